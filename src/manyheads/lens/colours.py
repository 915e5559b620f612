"""Colours: one hue with perceptually even lightness steps for magnitude; grey for the rest."""

# OKLCH (Ottosson 2020) at hue 255: lightness falls (on paper) or rises (on a dark ground) linearly;
# the same lightness at hue 50, for negative numbers: signed numbers have one hue per sign.
RAMPS = (
    # paper, night, against, against night
    ("#fafafa", "#171d26", "#fafafa", "#171d26"),
    ("#d0e2fa", "#20324a", "#f6daca", "#452919"),
    ("#a7caf7", "#29486f", "#efba9c", "#67391e"),
    ("#7fb1f1", "#335f96", "#e59a6f", "#8b4a23"),
    ("#5a98e6", "#4077bc", "#d67b44", "#ae5d2b"),
    ("#357fd7", "#5090e1", "#c45d0c", "#d07237"),
    ("#0866c4", "#69abfe", "#a34b01", "#ed8c52"),
    ("#00509f", "#9bc6fe", "#823a00", "#f4b28d"),
    ("#013c79", "#c9e0fe", "#632b00", "#f9d5c2"),
)
PAPER, NIGHT, AGAINST, AGAINST_NIGHT = zip(*RAMPS, strict=True)
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
