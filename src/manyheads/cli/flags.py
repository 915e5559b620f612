"""Messages name parameters in backticks, as `final=True`; the command line writes its options."""

import re

OTHER = {  # options that do not have the parameter's name
    "architecture": "--arch",
    "beams": "--beam",
    "coverage_penalty": "--coverage",
    "diversity": "--diverse",
    "folder": "--from",
    "metrics": "--metric",
    "templates": "--template",
    "texts": "--text",
}
_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`\s]+))?`")


def with_flags(message: str) -> str:
    """Write options for the parameters that a message names.

    Examples:
        >>> with_flags("set `final=True`, or `split='valid'`; leave `n_best` out")
        'set --final, or --split valid; leave --n-best out'
        >>> with_flags("leave out `integrated=False`")
        'leave out --no-integrated'
    """
    return _PARAMETER.sub(_flag, message)


def _flag(parameter: re.Match[str]) -> str:
    name, value = parameter[1], parameter[2]
    flag = OTHER.get(name, f"--{name.replace('_', '-')}")
    if value == "False":
        return f"--no-{flag.removeprefix('--')}"
    if value in (None, "True"):
        return flag
    return f"{flag} {value.strip(chr(34) + chr(39))}"
