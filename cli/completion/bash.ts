import { argumentOf, type Commands, type Completes, listSessions, namesOf, wordsAfter } from "./words.ts";

/** The completion for bash 3.2 and newer. */
export function bashScript(commands: Commands): string {
  const names = Object.keys(commands).join(" ");
  const rows = Object.entries(commands);
  const afterOption = rows.flatMap(([name, { options }]) =>
    Object.entries(options).flatMap(([option, spec]) => {
      const value = wordsAfter(spec);
      const words = namesOf(option, spec).map((each) => `"${name} ${each}"`);
      return value === undefined ? [] : [`    ${words.join("|")}) ${reply(value)} return ;;`];
    }),
  );
  const valued = rows.map(([name, { options }]) => {
    const with_ = Object.entries(options).flatMap(([option, spec]) =>
      wordsAfter(spec) === undefined ? [] : namesOf(option, spec),
    );
    return `    ${name}) [[ " ${with_.join(" ")} " == *" $2 "* ]] ;;`;
  });
  const options = rows.map(([name, spec]) => {
    const all = Object.entries(spec.options).flatMap(([option, of]) => namesOf(option, of));
    return `      ${name}) words="${all.join(" ")}" ;;`;
  });
  const places = rows.flatMap(([name, spec]) =>
    spec.arguments.flatMap((argument, index) => {
      const completes = argumentOf(argument);
      return completes.kind === "nothing" ? [] : [`    "${name} ${index}") ${reply(completes)} ;;`];
    }),
  );
  return `# bash completion of pi-rpcd; made by: pi-rpcd completion bash
_pi_rpcd_takes_value() {
  case $1 in
${valued.join("\n")}
    *) false ;;
  esac
}

_pi_rpcd_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_pi_rpcd_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen "$1" -- "$cur"))
  compopt -o filenames 2>/dev/null || :
}

_pi_rpcd_sources() {
  local ids
  _pi_rpcd_sessions
  ids=("\${COMPREPLY[@]}")
  _pi_rpcd_files -f
  COMPREPLY+=("\${ids[@]}")
}

# Not by compgen -W, which runs the commands that its words name.
_pi_rpcd_sessions() {
  local id
  COMPREPLY=()
  while IFS= read -r id; do
    case $id in
      "$cur"*) COMPREPLY+=("$id") ;;
    esac
  done <<< "last
$(${listSessions})"
}

_pi_rpcd() {
  local cur=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]}
  local words="" place=0 index=2
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _pi_rpcd_words "${names} --help --version"
    return
  fi
  case "$command $previous" in
${afterOption.join("\n")}
  esac
  if [[ $cur == -* ]]; then
    case $command in
${options.join("\n")}
    esac
    _pi_rpcd_words "$words"
    return
  fi
  while [ "$index" -lt "$COMP_CWORD" ]; do
    case \${COMP_WORDS[index]} in
      -*) if _pi_rpcd_takes_value "$command" "\${COMP_WORDS[index]}"; then index=$((index + 1)); fi ;;
      *) place=$((place + 1)) ;;
    esac
    index=$((index + 1))
  done
  case "$command $place" in
${places.join("\n")}
  esac
}

complete -F _pi_rpcd pi-rpcd
`;

  function reply(completes: Completes): string {
    switch (completes.kind) {
      case "nothing":
        return ":;";
      case "words":
        return `_pi_rpcd_words "${completes.words.join(" ")}";`;
      case "files":
        return "_pi_rpcd_files -f;";
      case "directories":
        return "_pi_rpcd_files -d;";
      case "sessions":
        return "_pi_rpcd_sessions;";
      case "sources":
        return "_pi_rpcd_sources;";
      case "commands":
        return `_pi_rpcd_words "${names}";`;
    }
  }
}
