// relay verify with an inclusion proof and with disclosures.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { disclose } from '#src/domain/receipt/disclosures.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { receiptLeafData } from '#src/domain/transparency/tree.ts';
import { signed } from '#test/support/given/given-receipt.ts';
import { sha256, testKey } from '#test/support/given/primitives.ts';
import { ORIGIN, smallLog } from '#test/support/log/small-log.ts';
import { runCli } from '#test/support/process/cli.ts';
import { payload as base, key, keySet, receiptFolder } from '#test/support/process/cli-receipts.ts';
import { type C2spKey, c2spKey } from '#test/support/witness/c2sp.ts';
import { cosignedBy, policyText } from '#test/support/witness/cosigned.ts';

const { file, remove } = receiptFolder();
after(remove);

const url = disclose(new Uint8Array(16), 'target_url', 'https://target.example/hook?s=1');
const payload: ReceiptPayload = {
  ...base,
  v: 2,
  request: { ...base.request, _sd: [url.commitment, 'b', 'c', 'd'].map((one) => one.padEnd(43, 'x')) },
  log: { origin: ORIGIN, mmdSeconds: 3600 },
};
const jws = await signed(payload, key);
const leaves = [sha256('a'), receiptLeafData(jws), sha256('b')];
const log = smallLog(ORIGIN, testKey({ purpose: 'checkpoint' }));
for (const data of leaves) await log.append(data);
const good = await log.proof(1);
const foreignProof = await log.proof(0);
const receipt = file('receipt.jws', jws);
const keys = file('all-keys.json', keySet(key, log.key));

async function verify(...more: readonly string[]) {
  const { code, stdout, stderr } = await runCli(['verify', receipt, '--keys', keys, '--json', ...more]);
  assert.equal(stderr, '');
  const { checks, ...rest } = JSON.parse(stdout);
  const logged = checks.find(({ name }: { name: string }) => name === 'receipt_logged');
  return { code, logged, ok: rest.ok, disclosures: rest.disclosures };
}

describe('--proof', () => {
  test('a good proof: the receipt is in the log that it names', async () => {
    const found = await verify('--proof', file('good.tlog-proof', good));
    assert.deepEqual(found.logged, {
      name: 'receipt_logged',
      ok: true,
      details: { pending: false, origin: ORIGIN, index: 1, size: 3 },
    });
    assert.deepEqual([found.code, found.ok], [0, true]);
  });

  test('as text: the index, and nothing that was not checked', async () => {
    const proof = ['--proof', file('good-text.tlog-proof', good)];
    const { stdout } = await runCli(['verify', receipt, '--keys', keys, ...proof]);
    assert.match(stdout, /✓ It is in the transparency log, index 1 of 3 \(receipt_logged\)\n/);
    assert.match(
      stdout,
      /\nVerified: (\d+) of \1 checks hold\.\nNot checked: whether witnesses have cosigned that log \(--policy\)\.\n$/,
    );
  });

  test('without it there is no check of the log', async () => {
    assert.deepEqual(await verify(), { code: 0, logged: undefined, ok: true, disclosures: undefined });
  });

  for (const [title, content, words] of [
    [
      'an error answer',
      '{"error":{"code":"receipt_not_ready"}}',
      /holds an error answer \(receipt_not_ready\)/,
    ],
    ['an error answer of no known kind', '{"error":{}}', /holds an error answer \(of no known kind\)/],
    ['a receipt', JSON.stringify({ jws }), /is no proof file/],
    ['a text', 'hello\n', /is no proof file/],
    ['nothing', '', /is no proof file/],
    ['a proof of another format', good.replace('@v1', '@v2'), /is no proof file/],
    ['half a proof', good.slice(0, 40), /is no proof file/],
    ['a checkpoint alone', good.slice(good.indexOf('\n\n') + 2), /is no proof file/],
  ] as const) {
    test(`${title} is not a proof: cannot run, and no verdict on the receipt`, async () => {
      const path = file('none.tlog-proof', content);
      const { code, stdout, stderr } = await runCli(['verify', receipt, '--keys', keys, '--proof', path]);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, words);
      assert.match(
        stderr,
        /^relay: [^\n]+none\.tlog-proof [^\n]+: it must be the answer of GET \/log\/proof\/[^\n]+\n$/,
      );
    });
  }

  test('a missing file: cannot run', async () => {
    const { code, stderr } = await runCli(['verify', receipt, '--keys', keys, '--proof', '/nowhere/proof']);
    assert.equal(code, 2);
    assert.match(stderr, /\/nowhere\/proof does not exist/);
  });
});

describe('--disclose', () => {
  const opened = [{ ok: true, name: 'target_url', value: 'https://target.example/hook?s=1' }];
  test('shows what an array of disclosures opens', async () => {
    const found = await verify('--disclose', file('array.json', JSON.stringify([url.text])));
    assert.deepEqual([found.code, found.ok, found.disclosures], [0, true, opened]);
  });
  test('accepts the complete execution response', async () => {
    const response = JSON.stringify({ mode: 'demo', disclosures: [url.text] });
    const found = await verify('--disclose', file('response.json', response));
    assert.deepEqual([found.code, found.ok, found.disclosures], [0, true, opened]);
  });
  test('prints them as text', async () => {
    const path = file('array.json', JSON.stringify([url.text]));
    const { stdout } = await runCli(['verify', receipt, '--keys', keys, '--disclose', path]);
    assert.match(stdout, /✓ target_url: https:\/\/target\.example\/hook\?s=1\n/);
  });
  for (const [title, more] of [
    ['by other keys', ['--keys', file('other-keys.json', keySet(testKey()))]],
    ['in the log', ['--proof', file('foreign.tlog-proof', foreignProof)]],
  ] as const) {
    test(`opens none if the receipt does not verify ${title}`, async () => {
      const args = [
        'verify',
        receipt,
        '--keys',
        keys,
        ...more,
        '--disclose',
        file('array.json', JSON.stringify([url.text])),
      ];
      const [text, json] = [await runCli(args), await runCli([...args, '--json'])];
      assert.deepEqual([text.code, json.code], [1, 1]);
      for (const { stdout } of [text, json]) assert.doesNotMatch(stdout, /target_url|target\.example/);
      assert.match(text.stdout, /Not opened: disclosures prove nothing if the receipt does not verify\./);
      assert.doesNotMatch(text.stdout, /committed to by/);
      const { ok, disclosures } = JSON.parse(json.stdout);
      assert.deepEqual([ok, disclosures], [false, []]);
    });
  }
  for (const content of ['{}', '[1]', '"x"', 'null', '{"disclosures":{}}']) {
    test(`cannot run on ${content}`, async () => {
      const path = file('none.json', content);
      const { code, stderr } = await runCli(['verify', receipt, '--keys', keys, '--disclose', path]);
      assert.equal(code, 2);
      assert.match(stderr, /contains no disclosures/);
    });
  }
});

describe('--policy', () => {
  const [a, b] = [c2spKey('a.example', 4), c2spKey('b.example', 6)];
  const policy = file(
    'witnesses.policy',
    policyText({ one: a, two: b }, 'group both all one two', 'quorum both'),
  );
  const time = Date.UTC(2026, 0, 2) / 1000;
  const witnessed = async (...witnesses: readonly C2spKey[]) => {
    const proof = file('cosigned.tlog-proof', cosignedBy(good, time, ...witnesses));
    const args = ['verify', receipt, '--keys', keys, '--proof', proof, '--policy', policy];
    return runCli(args);
  };

  test('a quorum: who has cosigned, and when', async () => {
    const { code, stdout } = await witnessed(a, b);
    assert.equal(code, 0);
    const at = '2026-01-02T00:00:00.000Z';
    assert.ok(stdout.includes(`✓ Cosigned by one at ${at}, two at ${at}. (receipt_witnessed)\n`), stdout);
    assert.match(stdout, /\nVerified: (\d+) of \1 checks hold\.\n$/);
  });
  test('no quorum: the names that are missing, exit 1', async () => {
    const { code, stdout } = await witnessed(b);
    assert.equal(code, 1);
    assert.match(stdout, /✗ .* \(receipt_witnessed\)\n/);
    assert.match(stdout, /missing: \["one"\]/);
    assert.match(stdout, /problem: "?quorum"?\n/);
  });
  test('without --proof, or with a policy that is none, it cannot run', async () => {
    const { code, stderr } = await runCli(['verify', receipt, '--keys', keys, '--policy', policy]);
    assert.deepEqual(
      [code, stderr],
      [2, 'relay: --policy needs --proof: the cosignatures are in the inclusion proof\n'],
    );
    const wrong = file('wrong.policy', 'quorum unknown\n');
    const args = [
      'verify',
      receipt,
      '--keys',
      keys,
      '--proof',
      file('p.tlog-proof', good),
      '--policy',
      wrong,
    ];
    const refused = await runCli(args);
    assert.equal(refused.code, 2);
    assert.match(
      refused.stderr,
      /wrong\.policy is no policy file \(C2SP tlog-policy\): line 1: `unknown` is not the name of/,
    );
  });
});
