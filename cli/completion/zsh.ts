import {
  argumentOf,
  brief,
  type Commands,
  type Completes,
  listSessions,
  namesOf,
  quoted,
  wordsAfter,
} from "./words.ts";

/** The completion for zsh: a function for $fpath, which also registers itself when sourced. */
export function zshScript(commands: Commands): string {
  const rows = Object.entries(commands);
  const described = rows.map(([name, { summary }]) => `    ${quoted(`${name}:${brief(summary)}`)}`);
  const cases = rows.map(([name, spec]) => {
    const options = Object.entries(spec.options).flatMap(([option, of]) =>
      namesOf(option, of).map((each) => {
        const value = wordsAfter(of);
        const what = value === undefined ? "" : `:${of.placeholder ?? "VALUE"}:${action(value)}`;
        return quoted(`${each}[${escaped(brief(of.description))}]${what}`);
      }),
    );
    const places = spec.arguments.map((argument, index) =>
      quoted(`${argument.many === true ? "*" : index + 1}:${argument.name}:${action(argumentOf(argument))}`),
    );
    return `    ${name})\n      _arguments \\\n        ${[...options, ...places].join(" \\\n        ")}\n      ;;`;
  });
  return `#compdef pi-rpcd
# zsh completion of pi-rpcd; made by: pi-rpcd completion zsh
_pi_rpcd_sessions() {
  local -a sessions
  sessions=(last \${(f)"$(${listSessions})"})
  compadd -a sessions
}

_pi_rpcd_sources() {
  _pi_rpcd_sessions
  _files
}

_pi_rpcd_commands() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  _describe command commands
}

_pi_rpcd() {
  if (( CURRENT == 2 )); then
    _pi_rpcd_commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}

if [[ \${funcstack[1]} == _pi_rpcd ]]; then
  _pi_rpcd "$@"
else
  compdef _pi_rpcd pi-rpcd
fi
`;
}

function action(completes: Completes): string {
  switch (completes.kind) {
    case "nothing":
      return " ";
    case "words":
      return `(${completes.words.join(" ")})`;
    case "files":
      return "_files";
    case "directories":
      return "_files -/";
    case "sources":
      return "_pi_rpcd_sources";
    case "sessions":
      return "_pi_rpcd_sessions";
    case "commands":
      return "_pi_rpcd_commands";
  }
}

/** Brackets end the description, colons end a part. */
function escaped(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, (character) => `\\${character}`);
}
