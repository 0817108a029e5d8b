// Shell completion: bash runs the script that is printed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';

const { stdout: script } = await runCli(['completion', 'bash']);

/** What bash completes for the last word. */
function completed(...words: readonly string[]): readonly string[] {
  const source = `${script}
COMP_WORDS=(relay ${words.map((word) => `'${word}'`).join(' ')})
COMP_CWORD=${words.length}
_relay
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', source], { encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash completes commands, subcommands and the options of each', () => {
  assert.deepEqual(completed('ver'), ['verify']);
  assert.deepEqual(completed('keys', 'ro'), ['rotate']);
  assert.deepEqual(completed('verify', 'receipt.json', '--pr'), ['--proof']);
  assert.deepEqual(completed('payments', 'refund', 'be'), ['begin']);
  assert.ok(completed('pay', '--').includes('--max-price'));
  assert.ok(!completed('verify', '--').includes('--max-price'));
  assert.deepEqual(completed('nothing-of-ours-x'), []);
});

test('every command of the help is completed', async () => {
  const { stdout } = await runCli(['--help']);
  const listed = stdout
    .slice(stdout.indexOf('Commands:'), stdout.indexOf('Examples:'))
    .split('\n')
    .flatMap((line) => /^ {2}([a-z]+)\b/.exec(line)?.[1] ?? [])
    .filter((name) => name !== 'help' && name !== 'relay');
  const offered = completed('');
  assert.ok(listed.length > 8);
  assert.deepEqual(
    listed.filter((name) => !offered.includes(name)),
    [],
  );
});

test('zsh and fish get a script; another shell is refused with the accepted ones', async () => {
  assert.match((await runCli(['completion', 'zsh'])).stdout, /^autoload -U \+X bashcompinit/);
  const { stdout } = await runCli(['completion', 'fish']);
  assert.match(
    stdout,
    /^complete -c relay -n '__fish_use_subcommand' -a verify -d 'Verify one receipt offline\.'$/m,
  );
  assert.match(
    stdout,
    /^complete -c relay -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from rotate' -l /m,
  );
  const { code, stderr } = await runCli(['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});
