"""manyheads completion."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

# What stands for a shipped model, recipe or experiment, by the name of the parameter.
KINDS = {"model": "pretrained", "models": "pretrained", "systems": "pretrained"}
OWN = {("evaluate", "name"): "pretrained", ("doctor", "name"): "pretrained"}
OWN |= {("train", "recipe"): "recipes", ("recipe", "name"): "recipes", ("lab", "name"): "labs"}

BASH = """# manyheads completion bash, for ~/.bashrc: eval "$(manyheads completion bash)"
_manyheads() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    local words=
    if (( COMP_CWORD == 1 )); then
        words="%s"
    else
        case "$command $before" in
%s
        *) case $command in
%s
        esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -o bashdefault -F _manyheads manyheads
"""
ZSH = """# manyheads completion zsh, for ~/.zshrc: eval "$(manyheads completion zsh)"
autoload -Uz compinit bashcompinit && compinit && bashcompinit
"""


def run(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script for completion with the Tab key: commands, options and names."""
    from manyheads.cli.main import VERBS, whole

    commands = whole().commands
    if shell == "fish":
        print("\n".join(_fish(commands, VERBS)))
        return
    values, words = [], []
    for verb, command in commands.items():
        parts = _parts(command)
        flags = [flag for each in parts for flag in (*each.opts, *each.secondary_opts)]
        every = [*getattr(command, "commands", ()), *(f for f in flags if f.startswith("--"))]
        for each in parts:
            names = _names(verb, each)
            if names and each.param_type_name == "argument":
                every += names
            elif names:
                cases = "|".join(f'"{verb} {flag}"' for flag in each.opts)
                values.append(f'        {cases}) words="{" ".join(names)}" ;;')
        words.append(f'            {verb}) words="{" ".join(dict.fromkeys(every))}" ;;')
    verbs = " ".join([*commands, "--help", "--plugin", "--version"])
    script = BASH % (verbs, "\n".join(values), "\n".join(words))
    print((ZSH if shell == "zsh" else "") + script, end="")


def _parts(command: Any) -> list[Any]:
    """List the parameters of a command and of those below it."""
    below = getattr(command, "commands", {}).values()
    return [each for own in (command, *below) for each in own.params]


def _names(verb: str, parameter: Any) -> Sequence[str]:
    """List what is shipped and may be named there."""
    from manyheads.labs.catalogue import CATALOGUE
    from manyheads.project.paths import shipped

    kind = OWN.get((verb, parameter.name)) or KINDS.get(parameter.name)
    if kind == "labs":
        return list(CATALOGUE)
    return list(shipped(kind)) if kind else ()


def _fish(commands: Any, abouts: dict[str, str]) -> Iterator[str]:
    yield "# manyheads completion fish > ~/.config/fish/completions/manyheads.fish"
    for verb, about in abouts.items():
        yield f"complete -c manyheads -n __fish_use_subcommand -a {verb} -d {_quoted(about)}"
    for verb, command in commands.items():
        here = f"complete -c manyheads -n '__fish_seen_subcommand_from {verb}'"
        for word in getattr(command, "commands", ()):
            yield f"{here} -a {word}"
        for each in _parts(command):
            names, about = _names(verb, each), _quoted((getattr(each, "help", "") or "").strip())
            given = f" -a {_quoted(' '.join(names))}" if names else ""
            for flag in each.opts if each.param_type_name == "option" else ():
                if flag.startswith("--"):
                    takes = "" if each.is_flag else " -r"
                    yield f"{here} -l {flag[2:]}{takes}{given} -d {about}"
            if names and each.param_type_name == "argument":
                yield f"{here}{given}"


def _quoted(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
