// The importable verifier, from source and as built: both return the same result for every receipt and proof.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isReceiptPayload } from '#src/domain/receipt/payload.ts';
import * as built from '#src/verify/built/verify.js';
import * as source from '#src/verify/verifier.ts';
import { forged } from '#test/support/given/given-receipt.ts';
import * as given from '#test/support/log/logged-receipt.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { cosignedBy, policyText } from '#test/support/witness/cosigned.ts';
import { RECEIPT_CHECKS } from '#test/support/world/service-receipts.ts';

const { keys, jws, payload, proof } = given;
const header = { alg: 'EdDSA', kid: given.key.keyId, typ: 'relay-receipt+jws' };
const failed = ({ checks }: built.ReceiptReport) => checks.filter(({ ok }) => !ok).map(({ name }) => name);

// The source has the types of the built verifier.
const BOTH: Readonly<Record<string, Pick<typeof built, 'verifyReceipt' | 'verifyProof'>>> = {
  source,
  built,
};

for (const [name, { verifyReceipt, verifyProof }] of Object.entries(BOTH)) {
  describe(`the verifier, ${name}`, () => {
    test('a good receipt verifies in each of its forms, with keys as text or parsed', async () => {
      const [answer, execution] = [given.receiptAnswer(), given.executionAnswer()];
      const forms = [jws, `${jws}\n`, answer, JSON.stringify(answer), execution, JSON.stringify(execution)];
      for (const form of forms) {
        for (const keySet of [keys, JSON.stringify(keys)]) {
          const report = await verifyReceipt(form, { keys: keySet });
          const { checks, ...rest } = report;
          assert.deepEqual(rest, {
            ok: true,
            receiptId: payload.receiptId,
            jobId: payload.jobId,
            keyId: given.key.keyId,
            signatureVerified: true,
            problem: null,
            payload,
            differences: [],
            opened: null,
          });
          assert.deepEqual(
            checks.map((check) => check.name),
            RECEIPT_CHECKS,
          );
        }
      }
    });

    test('with a policy, a quorum of its witnesses must have cosigned the proof, and who is missing is named', async () => {
      const [one, two] = [c2spKey('one.example', 4), c2spKey('two.example', 6)];
      const policy = policyText({ one, two }, 'group both all one two', 'quorum both');
      const now = payload.iat + 601;
      const check = async (text: string | null) => {
        const report = await verifyReceipt(jws, { keys, proof: text, policy, now });
        const found = report.checks.find((check) => check.name === 'receipt_witnessed');
        if (found?.name !== 'receipt_witnessed') return assert.fail('no check');
        assert.equal(report.ok, found.ok);
        return [found.ok, found.details?.names, found.details?.missing, found.details?.problem];
      };
      assert.deepEqual(await check(cosignedBy(proof, now, one, two)), [true, ['one', 'two'], [], undefined]);
      assert.deepEqual(await check(cosignedBy(proof, now, two)), [false, ['two'], ['one'], 'quorum']);
      assert.deepEqual(await check(null), [false, [], ['one', 'two'], 'proof']);
      await assert.rejects(verifyReceipt(jws, { keys, policy }), /^TypeError: policy needs a proof/);
      await assert.rejects(
        verifyReceipt(jws, { keys, proof, policy: 'quorum x' }),
        /^TypeError: policy is no policy file: line 1: `x` is not the name/,
      );
    });

    test('a changed payload, signature or signer fails the check for it, and no payload is returned', async () => {
      const cases = [
        [given.withPayload({ ...payload, mode: 'demo' }), ['signature_valid']],
        [`${jws.slice(0, -8)}${given.tampered(jws.slice(-8))}`, ['signature_valid']],
        [await forged(header, payload, given.stranger), ['signature_valid']],
        [
          await forged({ ...header, kid: given.stranger.keyId }, payload, given.stranger),
          ['signature_valid', 'key_valid_at_issue'],
        ],
      ] as const;
      for (const [text, names] of cases) {
        const report = await verifyReceipt(text, { keys });
        assert.deepEqual([report.ok, report.payload, failed(report)], [false, null, names]);
      }
    });

    test('a receipt of another id or job than expected fails', async () => {
      assert.deepEqual(failed(await verifyReceipt(jws, { keys, receiptId: 'rcpt_other' })), [
        'receipt_present',
      ]);
      assert.deepEqual(failed(await verifyReceipt(jws, { keys, jobId: 'job_other' })), ['payload_job_id']);
    });

    test('readable text that differs from the signed receipt is reported, and fails', async () => {
      const { ok, signatureVerified, differences } = await verifyReceipt(
        given.executionAnswer({ mode: 'demo' }),
        { keys },
      );
      assert.deepEqual([ok, signatureVerified], [false, true]);
      assert.deepEqual(differences, ['mode']);
    });

    test('an input without a receipt returns a report with the problem', async () => {
      const none = [
        '',
        '{',
        '[]',
        'null',
        '{}',
        'a b c',
        { error: { code: 'job_not_found' } },
        [],
        '{"jws":5}',
      ];
      for (const text of none) {
        const report = await verifyReceipt(text, { keys });
        assert.equal(report.ok, false);
        assert.match(report.problem ?? '', /^The text (holds|is neither) .*: it must be the answer of GET/);
      }
      const broken = await verifyReceipt('a.b.c', { keys, proof });
      assert.deepEqual([broken.ok, broken.problem], [false, null]);
    });

    test('with a proof the log is checked: included, pending, overdue, malformed', async () => {
      const check = async (options: object) => {
        const report = await verifyReceipt(jws, { keys, ...options });
        return [report.ok, report.checks.at(-1)?.name, report.checks.at(-1)?.details];
      };
      const dueBy = payload.iat + 3600;
      const facts = { pending: false, origin: given.ORIGIN, index: 2, size: 5 };
      assert.deepEqual(await check({ proof }), [true, 'receipt_logged', facts]);
      assert.deepEqual(await check({ proof: null, now: dueBy }), [
        true,
        'receipt_logged',
        { pending: true, dueBy },
      ]);
      assert.deepEqual(await check({ proof: null, now: dueBy + 1 }), [
        false,
        'receipt_logged',
        { pending: false, dueBy },
      ]);
      assert.deepEqual(await check({ proof: 'x' }), [
        false,
        'receipt_logged',
        { pending: false, problem: 'malformed' },
      ]);
    });

    test('a proof returns the index of the receipt, or its problem', async () => {
      assert.deepEqual(await verifyProof(proof, { receipt: jws, keys }), {
        ok: true,
        index: given.INDEX,
        size: given.LEAVES.length,
        origin: given.ORIGIN,
        root: given.ROOT,
        keyId: given.checkpointKey.keyId,
      });
      const elsewhere = await given.checkpointOf(given.LEAVES, given.checkpointKey, 'other.example/receipts');
      const cases = [
        [proof, '{}', 'receipt'],
        ['c2sp.org/tlog-proof@v2\n', jws, 'malformed'],
        [given.proofBy(await given.checkpointOf(given.LEAVES, given.key)), jws, 'checkpoint'],
        [proof.replace('\n5\n', '\n6\n'), jws, 'checkpoint'],
        [given.proofBy(elsewhere), jws, 'origin'],
        [proof.replace('index 2', 'index 3'), jws, 'inclusion'],
        [proof, given.withPayload(payload), 'inclusion'],
      ] as const;
      for (const [text, receipt, problem] of cases) {
        assert.deepEqual(await verifyProof(text, { receipt, keys }), { ok: false, problem });
      }
    });

    test('disclosures open the commitments of the receipt; others fail; a bad receipt opens none', async () => {
      const good = [{ ok: true, name: 'target_url', value: 'https://target.example/<hook>' }];
      for (const disclosures of [
        given.disclosures,
        JSON.stringify(given.disclosures),
        given.executionAnswer(),
      ]) {
        const report = await verifyReceipt(jws, { keys, disclosures });
        assert.deepEqual([report.ok, report.opened], [true, good]);
      }
      const wrong = await verifyReceipt(jws, { keys, disclosures: given.foreignDisclosures });
      const problem = { ok: false, name: 'target_url', problem: 'not_committed' };
      assert.deepEqual([wrong.ok, wrong.opened], [false, [problem]]);
      const bad = await verifyReceipt(given.withPayload(payload), { keys, disclosures: given.disclosures });
      const another = { keys, disclosures: given.disclosures, receiptId: 'rcpt_other' };
      assert.deepEqual((await verifyReceipt(jws, another)).opened, []);
      assert.deepEqual([bad.ok, bad.opened], [false, []]);
    });

    test('missing or invalid options throw a TypeError', async () => {
      const bad: readonly (readonly [object | undefined, RegExp])[] = [
        [undefined, /keys are missing/],
        [{}, /keys are missing/],
        [{ keys: 'nonsense' }, /no JWK set/],
        [{ keys: { keys: [] } }, /no Ed25519 key/],
        [{ keys, proof: 5 }, /proof must be/],
        [{ keys, now: Number.NaN, proof: null }, /now must be/],
        [{ keys, disclosures: 5 }, /disclosures must be/],
      ];
      const unchecked: (receipt: unknown, options: unknown) => Promise<unknown> = verifyReceipt as never;
      for (const [options, message] of bad) {
        await assert.rejects(unchecked(jws, options), { name: 'TypeError', message });
      }
      await assert.rejects(unchecked(5, { keys }), { name: 'TypeError', message: /text or parsed JSON/ });
    });

    test('without WebCrypto, or without its Ed25519, there is no verdict on the receipt', async () => {
      const { subtle } = crypto;
      const before = Object.getOwnPropertyDescriptor(crypto, 'subtle');
      const refused = Object.assign(new Error('no'), { name: 'NotSupportedError' });
      const cases = [
        undefined,
        { digest: subtle.digest.bind(subtle), importKey: () => Promise.reject(refused) },
      ];
      try {
        for (const less of cases) {
          Object.defineProperty(crypto, 'subtle', { value: less, configurable: true });
          await assert.rejects(verifyReceipt(jws, { keys }), { name: 'CannotVerify' });
        }
      } finally {
        Reflect.deleteProperty(crypto, 'subtle');
        if (before !== undefined) Object.defineProperty(crypto, 'subtle', before);
      }
    });
  });
}

/** Every value that differs from a valid one in one place: missing, null, of another type, extra, at a limit. */
function* invalidVariants(value: unknown): Generator<unknown> {
  yield* [null, 'x', '', 7.5, -1, 1, 4, true, [], {}, ['x']];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    for (const other of invalidVariants(member)) {
      yield Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other };
    }
    if (!Array.isArray(value))
      yield Object.fromEntries(Object.entries(value).filter(([one]) => one !== name));
  }
  if (!Array.isArray(value))
    yield* [
      { ...value, extra: 1 },
      { ...value, toString: 1 },
    ];
}

test('the built verifier accepts exactly the payloads that the domain accepts', async () => {
  const counts = { good: 0, bad: 0 };
  for (const changed of invalidVariants(payload)) {
    const text = await forged(header, changed, given.key);
    const { checks } = await built.verifyReceipt(text, { keys });
    const supported = checks.find(({ name }) => name === 'payload_version_supported')?.ok;
    assert.equal(supported, isReceiptPayload(changed), JSON.stringify(changed));
    counts[supported ? 'good' : 'bad']++;
  }
  assert.ok(counts.good > 50 && counts.bad > 500, JSON.stringify(counts));
});
