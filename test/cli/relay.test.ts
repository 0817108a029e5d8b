// The command line as a whole: the help of every command, and the exit statuses.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { ScheduleRequest } from '#src/domain/schedule/plan.ts';
import { schemaCheck } from '#src/http/request/validation.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const COMMANDS = [
  ['serve'],
  ['demo'],
  ['doctor'],
  ['verify'],
  ['migrate'],
  ['backup'],
  ['restore'],
  ['keys'],
  ['keys', 'init'],
  ['pay'],
  ['payments'],
  ['payments', 'resolve'],
] as const;

describe('relay', () => {
  for (const command of [[], ...COMMANDS]) {
    test(`${['relay', ...command].join(' ')} --help prints its usage: exit 0`, async () => {
      const { code, stdout, stderr } = await runCli([...command, '--help']);
      assert.equal(code, 0);
      assert.match(stdout, new RegExp(`^Usage: ${['relay', ...command].join(' ')} `));
      assert.equal(stderr, '');
    });
  }

  test('its help names every command and the exit statuses', async () => {
    const { stdout } = await runCli(['--help']);
    for (const [name] of COMMANDS) assert.match(stdout, new RegExp(`^  ${name}\\b`, 'm'));
    assert.match(stdout, /Exit status: 0 good, 1 .*, 2 /);
  });

  test('the help of relay pay and the guide have the same example of a schedule, which a relay takes', async () => {
    const { stdout } = await runCli(['pay', '--help']);
    const [example = ''] = /^\{\n.*^\}/ms.exec(stdout) ?? [];
    assert.deepEqual(schemaCheck(ScheduleRequest).faults(JSON.parse(example)), []);
    const guide = readFileSync(`${rootPath}/src/verify/README.md`, 'utf8');
    assert.ok(guide.includes(`\`\`\`json\n${example}\n\`\`\`\n`), example);
  });

  test('--version is the version of the service', async () => {
    const { code, stdout } = await startCli(['--version']).ended;
    assert.deepEqual({ code, stdout }, { code: 0, stdout: '0.1.0\n' });
  });

  test('without a command it shows its help on stderr and cannot run', async () => {
    const { code, stdout, stderr } = await startCli([]).ended;
    assert.equal(code, 2);
    assert.equal(stdout, '');
    assert.match(stderr, /^Usage: relay /);
  });

  const unrunnable: readonly (readonly string[])[] = [
    ['bogus'],
    ['serve', '--bogus'],
    ['serve', 'extra'],
    ['payments', 'bogus'],
    ['verify', 'a', '--proof', 'b'],
    ['verify', 'a', '--disclose', 'b'],
  ];
  for (const args of unrunnable) {
    test(`relay ${args.join(' ')} cannot run: exit 2 and one line`, async () => {
      const { code, stdout, stderr } = await runCli(args);
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.match(stderr, /^relay: [^\n]+\n$/);
    });
  }
});
