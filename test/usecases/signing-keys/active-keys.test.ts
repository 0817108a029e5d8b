// The keys of a running process: it rereads log and key file automatically, and makes only signatures that verify.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReceiptPayload, parseJws } from '#src/domain/receipt/payload.ts';
import { Fault } from '#src/domain/refusal.ts';
import { activeKeys, demandSigningKey } from '#src/usecases/signing-keys/active-keys.ts';
import { rotateKeys } from '#src/usecases/signing-keys/change-keys.ts';
import { keyDirectory, loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { otherPayment } from '#test/support/chain/fakes-payments.ts';
import { execute, paidWith } from '#test/support/given/given-call.ts';
import { at, hex, keyRetired, T0 } from '#test/support/given/given-events.ts';
import { ran } from '#test/support/given/given-payment.ts';
import { faultyLog } from '#test/support/log/fakes-log.ts';
import { memoryLog } from '#test/support/log/memory-log.ts';
import { quiet, succeeding } from '#test/support/world/fakes.ts';
import { activationOf, memoryKeyStore, storedKey } from '#test/support/world/fakes-keys.ts';
import { audited, given, shared, world } from '#test/support/world/fakes-world.ts';

const KEYS = 'keys-relay';
const first = storedKey();
const checkpoint = storedKey('checkpoint');

/** A process that has started with `first` and `checkpoint`, and looks every 5 s. */
async function started(common = shared()) {
  const it = world(common);
  if ((await it.log.readStream(KEYS)).length === 0)
    await given(it, KEYS, activationOf(first), activationOf(checkpoint));
  const store = memoryKeyStore(first, checkpoint);
  const { keys: announced } = await loadKeyRing(it);
  const directory = keyDirectory(it, announced);
  const { clock, logger } = it;
  const own = activeKeys({ store, directory, clock, logger }, store.read());
  const ending = new AbortController();
  const watching = own.watch(ending.signal);
  const look = async () => {
    await quiet();
    clock.advance(5000);
    await quiet();
  };
  const rotate = (purpose: 'receipt' | 'checkpoint' = 'receipt') =>
    rotateKeys({ ...it.deps, store }, purpose);
  const warned = () => it.logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
  return { ...it, ...own, store, directory, ending, watching, look, rotate, warned };
}

const noKey = (error: unknown) => error instanceof Fault && error.code === 'no_signing_key';

/** The old key signs receipts for this long after a rotation. */
const SETTLING_MS = 180_000;

test('a rotation is followed without a restart: the old key until caches of the key set know the fresh one, then that', async () => {
  const it = await started();
  assert.equal(it.signer.current().keyId, first.keyId);
  const { keyId } = await it.rotate();
  await it.look();
  assert.equal(it.signer.current().keyId, first.keyId);
  it.clock.advance(SETTLING_MS);
  await it.look();
  assert.equal(it.signer.current().keyId, keyId);
  assert.deepEqual(
    it.directory.list().map((key) => key.keyId),
    [first.keyId, checkpoint.keyId, keyId],
  );
});

test('the checkpoint key is followed too; null where there is none that is valid', async () => {
  const it = await started();
  assert.equal(it.checkpointSigner.current()?.x, checkpoint.x);
  const { keyId } = await it.rotate('checkpoint');
  await it.look();
  await it.look();
  assert.equal(it.checkpointSigner.current()?.keyId, keyId);
  await given(it, KEYS, keyRetired({ keyId, effectiveAt: at(0) }));
  it.clock.advance(600_000);
  await it.look();
  assert.equal(it.checkpointSigner.current(), null);
});

test('two processes on one log, each with its copy of the file: both switch, and what they sign verifies', async () => {
  const common = shared();
  const [it, other] = [await started(common), await started(common)];
  const { keyId } = await it.rotate();
  other.store.put(it.store.read());
  const record = () => it.directory.list();
  const used = new Set<string>();
  for (let n = 0; n < 4; n++) {
    for (const process of [it, other]) {
      const payment = otherPayment(`${n}${process === it ? 'a' : 'b'}`);
      const deps = { ...process.deps, signer: process.signer };
      const answer = await ran({ deps }, paidWith(payment, { key: `k${used.size}${n}${process.owner}` }));
      used.add(answer.receipt.keyId);
      const key = (await record()).find((each) => each.keyId === answer.receipt.keyId);
      assert.ok(key);
      const known = { ...it, key: { ...it.key, record: key } };
      assert.equal((await audited(known, answer.job.id)).ok, true);
    }
    if (n === 1) for (const { clock } of new Set([it, other])) clock.advance(SETTLING_MS);
    await Promise.all([it.look(), other.look()]);
  }
  assert.deepEqual([...used], [first.keyId, keyId]);
  assert.deepEqual([it.signer.current().keyId, other.signer.current().keyId], [keyId, keyId]);
});

test('a call is under way in a process whose clock is ahead while the key is rotated: its receipt verifies', async () => {
  const common = { ...shared(), log: faultyLog([], memoryLog({ now: () => T0 })) };
  const [it, operator] = [await started(common), await started(common)];
  it.clock.skew(1_570_000);
  it.outbound.script(async () => {
    await operator.rotate();
    return succeeding();
  });
  const answer = await ran({ deps: { ...it.deps, signer: it.signer } });
  const record = (await it.directory.refresh()).find(({ keyId }) => keyId === answer.receipt.keyId);
  assert.ok(record?.notAfter);
  assert.equal((await audited({ ...it, key: { ...it.key, record } }, answer.job.id)).ok, true);
});

test('a rotation with another copy of the key file is logged once, until this process has the new key', async () => {
  const common = shared();
  const [it, other] = [await started(common), await started(common)];
  await it.rotate();
  for (let n = 0; n < 3; n++) await Promise.all([it.look(), other.look()]);
  assert.deepEqual(it.warned(), []);
  const lines = other.warned();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /was retired, and its key file has no other: copy the key file/);
  other.store.put(it.store.read());
  await other.look();
  assert.equal(other.warned().length, 1);
});

test('a file that cannot be read is logged once, and the current keys are kept', async () => {
  const it = await started();
  it.store.breakWith(new Error('key file is not JSON'));
  await it.look();
  await it.look();
  assert.equal(it.signer.current().keyId, first.keyId);
  assert.equal(it.warned().length, 1);
  assert.match(it.warned()[0] ?? '', /key file/);
  it.store.breakWith(null);
  const { keyId } = await it.rotate();
  it.clock.advance(SETTLING_MS);
  await it.look();
  assert.equal(it.signer.current().keyId, keyId);
  it.store.breakWith(new Error('key file is not JSON'));
  await it.look();
  assert.equal(it.warned().length, 2);
});

test('a file with another secret, or without a key that is valid, changes nothing', async () => {
  const it = await started();
  const stranger = storedKey();
  it.store.put({ keys: [stranger], secretCheck: hex('4') });
  await it.look();
  assert.equal(it.signer.current().keyId, first.keyId);
  it.store.put({ keys: [stranger, checkpoint], secretCheck: hex('3') });
  await it.look();
  await it.look();
  assert.equal(it.signer.current().keyId, first.keyId);
  assert.equal(it.warned().length, 2);
  await given(it, KEYS, activationOf(stranger));
  await it.look();
  assert.equal(it.signer.current().keyId, stranger.keyId);
});

test('an unavailable log changes nothing and is not logged here', async () => {
  const it = await started();
  it.log.setAway(true);
  await it.look();
  assert.equal(it.signer.current().keyId, first.keyId);
  assert.deepEqual(it.warned(), []);
});

test('if no key is valid any more nothing is signed, and it is logged once', async () => {
  const it = await started();
  await given(it, KEYS, keyRetired({ keyId: first.keyId, effectiveAt: at(60_000) }));
  it.clock.advance(61_000);
  await it.look();
  await it.look();
  assert.throws(() => it.signer.current(), noKey);
  const errors = it.logger.lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ message }) =>
      /no valid signing key.*: no call is executed\. Correct the clock/.test(message),
    ),
    [true],
  );
});

test('what was issued under a former key is signed with it again; null where none was', async () => {
  const it = await started();
  const then = it.clock.now();
  await it.rotate();
  it.clock.advance(900_000);
  await it.look();
  assert.equal(it.signer.former(then)?.keyId, first.keyId);
  assert.equal(it.signer.former(then - 86_400_000), null);
});

test('a new call is refused before anything is charged where no key is valid for two more minutes', async () => {
  const it = await started();
  await given(it, KEYS, keyRetired({ keyId: first.keyId, effectiveAt: at(300_000) }));
  await it.look();
  const deps = { ...it.deps, signer: it.signer };
  it.clock.advance(300_000 - 120_000 - 5000);
  assert.equal((await execute({ deps })).kind, 'ran');
  it.clock.advance(1000);
  const before = it.trace.length;
  await assert.rejects(execute({ deps }, paidWith(otherPayment(), { key: 'k2' })), noKey);
  assert.equal(it.trace.length, before);
  assert.equal(it.payments.calls.verify, 1);
  // What is done is shown also without a key.
  it.clock.advance(600_000);
  assert.equal((await execute({ deps })).kind, 'replayed');
  assert.throws(() => demandSigningKey(deps), noKey);
});

test('a process whose clock is behind its key’s activation refuses too: it could not close what it begins', async () => {
  const it = await started();
  it.clock.skew(-90_000);
  await assert.rejects(execute({ deps: { ...it.deps, signer: it.signer } }), noKey);
  assert.equal(it.payments.calls.verify, 0);
});

test('a receipt is signed by one key, which is valid at its very iat, however keys come and go meanwhile', async () => {
  const it = world();
  const [asked, given]: [number[], string[]] = [[], []];
  const current = (at = Number.NaN) => {
    const key = storedKey();
    asked.push(at);
    given.push(key.keyId);
    const sign = (message: Uint8Array) => {
      it.clock.skew(60_000);
      return key.sign(message);
    };
    return { ...key, sign };
  };
  const answer = await ran({ deps: { ...it.deps, signer: { current, former: () => null } } });
  const { keyId, jws } = answer.receipt;
  const payload = parseJws(jws)?.payload;
  assert.ok(isReceiptPayload(payload));
  assert.equal(keyId, given.at(-1));
  assert.equal(parseJws(jws)?.header.kid, keyId);
  assert.equal(payload.iat, Math.floor((asked.at(-1) ?? 0) / 1000));
});

test('it looks until the process ends, and then no more', async () => {
  const it = await started();
  await it.look();
  it.ending.abort();
  await it.watching;
});

test('no key is valid: the fault and the health name the instant from which one is', async () => {
  const it = await started();
  assert.deepEqual(it.health(), { ok: true });
  // The clock was ahead by a day at the first start, and was corrected.
  it.clock.skew(-86_400_000);
  const notBefore = it.directory.list()[0]?.notBefore ?? 0;
  const validFrom = new Date(notBefore * 1000).toISOString();
  assert.deepEqual(it.health(), { ok: false, validFrom });
  const thrown = (work: () => unknown) => {
    try {
      work();
    } catch (error) {
      return error instanceof Fault ? [error.code, error.details, error.message.includes(validFrom)] : error;
    }
  };
  assert.deepEqual(
    thrown(() => demandSigningKey(it)),
    ['no_signing_key', { validFrom }, true],
  );
  const answer = execute({ deps: { ...it.deps, signer: it.signer } }, { presented: null });
  await assert.rejects(answer, { code: 'no_signing_key' });
  assert.deepEqual(it.outbound.sent, []);
});

test('the only key ends within two minutes: nothing is accepted any more, and no later key is named', async () => {
  const it = await started();
  await given(it, KEYS, keyRetired({ keyId: first.keyId, effectiveAt: at(60_000) }));
  await it.look();
  assert.deepEqual(it.health(), { ok: false, validFrom: null });
});

test('outbound requests: the key changes with the receipt key; a retired one is published 5 minutes more, a compromised one no more', async () => {
  const it = await started();
  const published = () => it.agentSigner.published().map(({ key }) => key.keyId);
  const old = first.agentKey?.keyId ?? '';
  assert.deepEqual([it.agentSigner.current()?.keyId, published()], [old, [old]]);
  const { keyId } = await it.rotate();
  await it.look();
  const fresh = it.store.read().keys.find((key) => key.keyId === keyId)?.agentKey?.keyId ?? '';
  assert.notEqual(fresh, old);
  // It is published before it signs.
  assert.deepEqual([it.agentSigner.current()?.keyId, published()], [old, [fresh, old]]);
  it.clock.advance(SETTLING_MS);
  assert.equal(it.agentSigner.current()?.keyId, fresh);
  const [, ended] = it.agentSigner.published();
  it.clock.advance(((ended?.notAfter ?? 0) + 300) * 1000 - it.clock.now());
  assert.deepEqual(published(), [fresh, old]);
  it.clock.advance(1000);
  assert.deepEqual(published(), [fresh]);
  await given(it, KEYS, keyRetired({ keyId, reason: 'compromised', compromisedAt: at(0) }));
  await it.look();
  assert.deepEqual([it.agentSigner.current(), published()], [null, []]);
});
