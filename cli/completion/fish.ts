import { argumentOf, brief, type Commands, type Completes, listSessions, quoted, wordsAfter } from "./words.ts";

/** The completion for fish. */
export function fishScript(commands: Commands): string {
  const names = Object.keys(commands).join(" ");
  const lines = Object.entries(commands).flatMap(([name, spec]) => {
    const within = `-n '__fish_seen_subcommand_from ${name}'`;
    const options = Object.entries(spec.options).map(([option, of]) => {
      const value = wordsAfter(of);
      const short = of.short === undefined ? "" : ` -s ${of.short}`;
      const takes = value === undefined ? "" : ` -x${words(value)}`;
      return `complete -c pi-rpcd ${within} -l ${option}${short}${takes} -d ${text(of.description)}`;
    });
    const places = spec.arguments.flatMap((argument) => {
      const given = words(argumentOf(argument));
      return given === "" ? [] : [`complete -c pi-rpcd ${within}${given}`];
    });
    return [`complete -c pi-rpcd -n __fish_use_subcommand -a ${name} -d ${text(spec.summary)}`, ...options, ...places];
  });
  return `# fish completion of pi-rpcd; made by: pi-rpcd completion fish
function __pi_rpcd_sessions
    echo last
    ${listSessions}
end

complete -c pi-rpcd -f
${lines.join("\n")}
`;

  function words(completes: Completes): string {
    switch (completes.kind) {
      case "nothing":
        return "";
      case "words":
        return ` -a '${completes.words.join(" ")}'`;
      case "files":
        return " -a '(__fish_complete_path)'";
      case "directories":
        return " -a '(__fish_complete_directories)'";
      case "sources":
        return " -a '(__pi_rpcd_sessions; __fish_complete_path)'";
      case "sessions":
        return " -a '(__pi_rpcd_sessions)'";
      case "commands":
        return ` -a '${names}'`;
    }
  }
}

/** fish has two escapes within single quotes. */
function text(description: string): string {
  return quoted(brief(description)).replaceAll("'\\''", "\\'");
}
