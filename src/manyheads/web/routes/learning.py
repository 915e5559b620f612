"""The ideas of the page's *Learn* view."""

from typing import Any

from fastapi import APIRouter

from manyheads.web.ideas import lessons

router = APIRouter(prefix="/api/v1", tags=["looking inside"])


@router.get("/learn")
def learn() -> dict[str, Any]:
    """List the ideas of the atlas that have a live figure, and what is often said wrongly."""
    return lessons()
