// relay completion: prints the completion of commands and options for a shell, from the commands as they are declared.
import { Argument, type Command } from 'commander';
import { print } from './terminal.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

const HELP = `
Examples:
  relay completion bash > /etc/bash_completion.d/relay      for every user; or, in ~/.bashrc: source <(relay completion bash)
  relay completion zsh > ~/.zsh/relay.zsh                   and in ~/.zshrc: source ~/.zsh/relay.zsh
  relay completion fish > ~/.config/fish/completions/relay.fish`;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print the completion of commands and options for a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', HELP)
    .action((shell: Shell) => print(scriptFor(shell, program)));
}

/** One command: its words after `relay`, and what may follow. */
type Node = {
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly string[];
};

function nodesOf(command: Command, path = ''): readonly Node[] {
  const options = [...command.options.flatMap(({ long }) => (long ? [long] : [])), '--help'];
  const below = command.commands.flatMap((one) => nodesOf(one, `${path} ${one.name()}`));
  return [{ path, commands: command.commands, options: [...new Set(options)] }, ...below];
}

function scriptFor(shell: Shell, program: Command): string {
  const nodes = nodesOf(program);
  if (shell === 'fish') return fish(nodes);
  return shell === 'bash' ? bash(nodes) : `autoload -U +X bashcompinit && bashcompinit\n${bash(nodes)}`;
}

/** File names are completed where no command or option fits. */
const bash = (nodes: readonly Node[]): string => `_relay() {
  local path='' words='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$path \${COMP_WORDS[at]}" in
      ${nodes.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`])).join(' | ')}) path="$path \${COMP_WORDS[at]}" ;;
    esac
  done
  case "$path" in
${nodes.map(({ path, commands, options }) => `    '${path}') words='${[...commands.map((one) => one.name()), ...options].join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _relay relay`;

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fish(nodes: readonly Node[]): string {
  return nodes
    .flatMap(({ path, commands, options }) => {
      const names = path.split(' ').filter((name) => name !== '');
      const seen = names.map((name) => `__fish_seen_subcommand_from ${name}`).join('; and ');
      const condition = `-n ${quoted(seen === '' ? '__fish_use_subcommand' : seen)}`;
      return [
        ...commands.map(
          (one) => `complete -c relay ${condition} -a ${one.name()} -d ${quoted(one.description())}`,
        ),
        ...options.map((option) => `complete -c relay ${condition} -l ${option.slice(2)}`),
      ];
    })
    .join('\n');
}
