"""Colours: one hue with perceptually even lightness steps for magnitude; grey for the rest."""

# OKLCH (Ottosson 2020) at hue 255: lightness falls (on paper) or rises (on a dark ground) linearly.
PAPER = (
    "#fafafa",
    "#d0e2fa",
    "#a7caf7",
    "#7fb1f1",
    "#5a98e6",
    "#357fd7",
    "#0866c4",
    "#00509f",
    "#013c79",
)
NIGHT = (
    "#171d26",
    "#20324a",
    "#29486f",
    "#335f96",
    "#4077bc",
    "#5090e1",
    "#69abfe",
    "#9bc6fe",
    "#c9e0fe",
)
# The same lightness at hue 50, for negative numbers: signed numbers have one hue per sign.
AGAINST = (
    "#fafafa",
    "#f6daca",
    "#efba9c",
    "#e59a6f",
    "#d67b44",
    "#c45d0c",
    "#a34b01",
    "#823a00",
    "#632b00",
)
AGAINST_NIGHT = (
    "#171d26",
    "#452919",
    "#67391e",
    "#8b4a23",
    "#ae5d2b",
    "#d07237",
    "#ed8c52",
    "#f4b28d",
    "#f9d5c2",
)
# Okabe & Ito 2008: eight colours that colour-blind readers can tell apart; black comes last.
IDENTITY = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
INK = "#1f2328"
FAINT = "#6b7280"  # 4.8 : 1 on white
LINE = "#d5d9e0"
BAR, TRACK = "#8b93a1", "#eceef2"  # a probability bar, and its background


def signed_shade(share: float) -> str:
    """Return a shade for a signed share: one hue above 0, one below; 1 and -1 are the darkest.

    Examples:
        >>> signed_shade(1), signed_shade(0), signed_shade(-1)
        ('#013c79', '#fafafa', '#632b00')
    """
    return shade(abs(share), AGAINST if share < 0 else PAPER)


def shade(share: float, ramp: tuple[str, ...] = PAPER) -> str:
    """Interpolate the colours of a ramp: `share` 0 gives the first, 1 the last.

    Examples:
        >>> shade(0), shade(1, NIGHT)
        ('#fafafa', '#c9e0fe')
    """
    position = min(max(share, 0.0), 1.0) * (len(ramp) - 1)
    low = min(int(position), len(ramp) - 2)
    pairs = ((int(ramp[low][i : i + 2], 16), int(ramp[low + 1][i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * (position - low)):02x}" for a, b in pairs)
