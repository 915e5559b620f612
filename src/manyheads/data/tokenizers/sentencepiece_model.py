"""Load a serialised sentencepiece model, and refuse a damaged one."""

import sentencepiece

from manyheads.errors import FolderError


def load_sentencepiece(
    model: bytes, name: str, remedy: str
) -> sentencepiece.SentencePieceProcessor:
    """Load a serialised model.

    Args:
        model: the content of the file.
        name: of the file, for errors.
        remedy: what to do about a damaged file, for errors.

    Raises:
        FolderError: the bytes are not a sentencepiece model, or its pieces are not UTF-8.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        processor.IdToPiece(list(range(processor.GetPieceSize())))  # decodes each piece
    except (RuntimeError, UnicodeDecodeError) as error:
        raise FolderError(
            f"{name} ({len(model)} bytes) is not a valid sentencepiece model. {remedy}"
        ) from error
    return processor
