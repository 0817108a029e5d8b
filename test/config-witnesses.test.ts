import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, readConfig } from '#src/config.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { C2spWitness } from '#test/support/witness/c2sp-witness.ts';

const folder = testFolder('config-witnesses');
const { vkey } = new C2spWitness();
const { vkey: other } = new C2spWitness({ name: 'witness.example/w2' });

function fileOf(...lines: readonly string[]): string {
  const path = join(folder, 'witness.policy');
  // A comment may have any octets.
  writeFileSync(path, lines.join('\n'), 'latin1');
  return path;
}

const read = (lines: readonly string[]) =>
  readConfig({ WITNESS_POLICY_FILE: fileOf(...lines), WITNESS_INTERVAL_SECONDS: '2' }).witnesses;

test('config: WITNESS_POLICY_FILE is a policy whose witnesses have a URL', () => {
  const witnesses = read([
    '# ours',
    `witness one ${vkey} https://one.example/prefix/`,
    `witness two ${other} http://127.0.0.1:4000`,
    'group both all one two',
    'quorum both',
  ]);
  assert.equal(witnesses?.intervalMs, 2000);
  assert.deepEqual(
    witnesses.policy.witnesses.map(({ name, url, key }) => [name, url, key.name]),
    [
      ['one', 'https://one.example/prefix', 'witness.example/w1'],
      ['two', 'http://127.0.0.1:4000', 'witness.example/w2'],
    ],
  );
  assert.equal(witnesses.policy.quorum?.name, 'both');
});

const WRONG: readonly (readonly [lines: readonly string[], problem: RegExp])[] = [
  [['# \xff', `witness one ${vkey}`, 'quorum one'], /line 2: the witness one has no URL/],
  [['', `witness one ${vkey} https://one.example`, 'quorum two'], /line 3: `two` is not the name/],
  [
    [`witness one ${vkey} https://one.example`, `witness two ${other}`, 'quorum one'],
    /line 2: the witness two has no URL/,
  ],
  [
    [`witness one ${vkey} ftp://one.example`, 'quorum one'],
    /line 1: the witness one has a URL that must be an http or https URL/,
  ],
  [
    [`witness one ${vkey} https://u:p@one.example`, 'quorum one'],
    /line 1: .* must hold no user and password/,
  ],
  [['quorum none'], /without a witness line/],
  [[], /there is no `quorum` line/],
];
for (const [lines, problem] of WRONG)
  test(`config: a wrong policy refuses the start with the line and the reason: ${problem.source}`, () => {
    assert.throws(
      () => read(lines),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.deepEqual(
          error.faults.map(({ variable }) => variable),
          ['WITNESS_POLICY_FILE'],
        );
        assert.match(error.message, problem);
        return true;
      },
    );
  });
