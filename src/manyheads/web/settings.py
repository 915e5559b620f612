"""What a server is told when it starts: where it listens, who may ask, and its limits."""

from dataclasses import dataclass, field
from ipaddress import ip_address

from manyheads.errors import UsageError


def is_loopback(host: str) -> bool:
    """Tell whether a host can only be this machine; of names, that is `localhost` alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Limits:
    """Limits on requests; what exceeds them is refused before it costs much."""

    body: int = 12 << 20  # bytes of a request
    bodies: int = 256 << 20  # bytes of all requests that are being read or answered
    pixels: int = 24_000_000  # of all images of a request
    inputs: int = 128  # texts or images of a request
    characters: int = 20_000  # of all texts of a request
    document: int = 500_000  # characters of a document
    beams: int = 16  # of a search; also answers per input
    prefix: int = 1000  # characters that translations begin with: time grows with their square
    tokens: int = 512  # to generate
    look: int = 128  # tokens of a text that is looked at: 1 to 5 s of a core for shipped models
    top: int = 1000  # classes, proposals or images found per input
    receive: float = 20.0  # seconds for a client to send its headers, and again for its body
    answer: float = 60.0  # seconds for an answer
    document_answer: float = 1800.0  # seconds for a document
    connections: int = 1024
    documents: int = 64  # that are translated at the same time
    all_documents: int = 4_000_000  # characters of all that have more than `characters`
    files: int = 4  # of them, those sent as files: a DOCX may take 300 MB
    queued: int = 32_768  # tokens in the queue of a model, by estimate; large requests apart
    batch: int = 4096  # tokens that are answered together, by estimate
    part: int = 1024  # of a request that costs more, answered in turns with others
    whole: int = 16_384  # of a request that cannot be answered in parts
    full_batch: int = 384  # tokens for which a model does not wait for more
    batch_wait: float = 0.005  # seconds that it waits otherwise


@dataclass(frozen=True)
class Settings:
    """Where a server listens, who may ask, and its limits."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None  # that clients must send; None: everybody may ask
    public: bool = False  # allow another address than loopback without a token
    # The database of DeepL's glossaries: all processes at this address share it; None: they cannot.
    glossaries: str | None = ":memory:"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse to listen to a network by accident, without a token and without consent."""
        if self.token is not None and (not self.token.strip() or not self.token.isascii()):
            raise UsageError("The token is empty, or not ASCII: give one of printable ASCII.")
        if not self.loopback and self.token is None and not self.public:
            raise UsageError(
                f"`host` is {self.host!r}, which others can reach, and there is no token: set "
                "MANYHEADS_TOKEN in the environment or name a `token_file`; or, where everybody "
                "may ask, say so with `public=True`."
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)
