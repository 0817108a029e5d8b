// relay audit with a policy: given recorded and kept cosigned checkpoints, when they are audited by the auditor's policy, then every
// cosignature of its witnesses is verified, and a quorum counts like a kept checkpoint.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { parseWitnessPolicy } from '#src/domain/transparency/witness-policy.ts';
import { audit, edited, findingTexts, givenRecord, nth } from '#test/support/given/audited-record.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { cosignedBy, policyText } from '#test/support/witness/cosigned.ts';

const [a, b] = [c2spKey('a.example', 4), c2spKey('b.example', 4)];
const policyOf = (text: string) => parseWitnessPolicy(text).policy ?? assert.fail();
const BOTH = policyOf(policyText({ a, b }, 'group both all a b', 'quorum both'));
const withPolicy = (policy = BOTH) => ({ keys: null, checkpoints: [], policy });

/** Two receipts in a checkpoint that a and b have cosigned, at 1 and 2 s after it; b by `delay` seconds later. */
async function witnessed(delay = 0) {
  const own = await givenRecord();
  for (let n = 0; n < 2; n++) await own.paid();
  await own.checkpoint();
  const seconds = Math.floor(own.clock.now() / 1000);
  await own.cosign([a, seconds + 1], [b, seconds + 2 + delay]);
  return { own, seconds };
}

describe('recorded cosignatures', () => {
  test('that verify are counted, with the time by which the quorum had cosigned', async () => {
    const { own, seconds } = await witnessed();
    const { findings, summary } = await audit(own.log.events, withPolicy());
    assert.deepEqual(findings, []);
    assert.deepEqual(summary.witnessed, { checkpoints: 1, largest: { size: 4, time: seconds + 2 } });
    assert.equal((await audit(own.log.events)).summary.witnessed, null);
  });
  test('of other witnesses than the policy’s are ignored: it may have changed since', async () => {
    const { own } = await witnessed();
    const other = policyOf(
      policyText({ c: c2spKey('c.example', 4), a }, 'group both all c a', 'quorum both'),
    );
    const { findings, summary } = await audit(own.log.events, withPolicy(other));
    assert.deepEqual([findings, summary.witnessed], [[], { checkpoints: 0, largest: null }]);
  });
  test('that do not verify are found, where name, key id and time are as in their line', async () => {
    const { own } = await witnessed();
    const event = nth(own.log.events, 'CheckpointCosigned');
    const cosignatures = structuredClone(event.data.cosignatures) as { line: string }[];
    const [first = assert.fail()] = cosignatures;
    const bytes = Buffer.from(first.line.split(' ')[2] ?? '', 'base64');
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    first.line = `— a.example ${bytes.toString('base64')}`;
    const events = edited(own.log.events, event, { cosignatures });
    assert.deepEqual(findingTexts(await audit(events)), []);
    const { findings, summary } = await audit(events, withPolicy());
    assert.deepEqual(findingTexts({ findings, summary }), ['cosignature_invalid log-witnesses 0']);
    assert.equal(
      findings[0]?.message,
      'The cosignature of the witness a on the checkpoint of 4 leaves does not verify.',
    );
    assert.deepEqual(summary.witnessed, { checkpoints: 0, largest: null });
  });
});

describe('a kept checkpoint', () => {
  const kept = async (note: string) => {
    const head = parseCheckpoint(note) ?? assert.fail();
    return { keys: null, policy: BOTH, checkpoints: [{ ...head, note, source: 'a file' }] };
  };
  test('with cosignatures that verify counts as cosigned, and with one that does not, it is found', async () => {
    const own = await givenRecord();
    await own.paid();
    await own.checkpoint();
    const note = String(nth(own.log.events, 'CheckpointSigned', 1).data.note);
    const good = await audit(own.log.events, await kept(cosignedBy(note, 100, a, b)));
    assert.deepEqual([good.findings, good.summary.witnessed?.checkpoints], [[], 1]);
    const of = String(nth(own.log.events, 'CheckpointSigned', 0).data.note);
    const bad = cosignedBy(of, 100, a).split('\n').at(-2);
    assert.deepEqual(findingTexts(await audit(own.log.events, await kept(`${note}${bad}\n`))), [
      'cosignature_invalid null null',
    ]);
  });
});

describe('a stolen key', () => {
  /** Two receipts in a cosigned checkpoint; then the key is compromised, and its thief adds a receipt of an earlier time. */
  async function backdated(delay = 0) {
    const { own } = await witnessed(delay);
    own.clock.advance(60_000);
    const second = testKey();
    await own.announce(second);
    const compromisedAt = own.now();
    await own.retire(own.key, { reason: 'compromised', compromisedAt });
    own.clock.skew(-30_000);
    await own.paid();
    own.clock.skew(30_000);
    await own.checkpoint();
    return own;
  }
  test('does not backdate a receipt to before a cosigned checkpoint that lacks it', async () => {
    const own = await backdated();
    const stream = nth(own.log.events, 'ReceiptSigned', 2).stream;
    assert.deepEqual(findingTexts(await audit(own.log.events)), []);
    assert.deepEqual(findingTexts(await audit(own.log.events, withPolicy())), [
      `receipt_date_unproven ${stream} 3`,
    ]);
  });
  test('is not shown by a checkpoint that one of two witnesses cosigned only after the compromise', async () => {
    const own = await backdated(120);
    assert.deepEqual(findingTexts(await audit(own.log.events, withPolicy())), []);
  });
});
