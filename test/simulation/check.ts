// The history checker: what must hold of a world that has come to rest, by its record, its chain, its targets and what its
// clients were answered.

import { createGeneration, generationOf } from '#projections/generations.ts';
import { Projection, readHead } from '#projections/projection.ts';
import { READ_MODELS } from '#projections/registry.ts';
import type { Json } from '#src/domain/canonical-json.ts';
import { STREAM } from '#src/domain/events.ts';
import { boughtNothing } from '#src/domain/payment/ledger.ts';
import { isMissing } from '#src/domain/payment/state.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { auditAgainstChain } from '#src/usecases/audit/audit-against-chain.ts';
import { Auditor } from '#src/usecases/audit/audit-log.ts';
import type { ScratchRow } from '#src/usecases/audit/stream-states.ts';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import { balanceOf } from '#src/usecases/payments/sum-payments.ts';
import { receiptJudge } from '#src/usecases/receipts/judge-receipt.ts';
import { loadKeyRing } from '#src/usecases/signing-keys/key-ring.ts';
import { memoryScratch } from '#test/support/log/memory-scratch.ts';
import { Random } from '#test/support/world/random.ts';
import { contradictionsOf } from '#test/support/world/receipt-log-world.ts';
import { EPOCH, Host } from './host.ts';
import { primitives } from './keys.ts';
import type { LogStore } from './log.ts';
import { ASSET, NETWORK, PAYEE, PRICE } from './payments.ts';
import type { Tables } from './row-statements.ts';
import { RowStorage, simulatedStore } from './row-store.ts';
import { Scheduler } from './scheduler.ts';
import { Trace } from './trace.ts';
import type { World } from './world.ts';

export async function checkWorld(world: World): Promise<void> {
  checkJobs(world);
  checkIntents(world);
  checkRunning(world);
  if (world.shared.isPaid) {
    checkMoney(world);
    await checkBooks(world);
  } else await world.witness.runs?.check(null, plainLog(world.shared.log));
  await checkReceipts(world);
  checkCosigned(world);
  await checkRows(world);
  await checkAudit(world);
}

/** The log as it is, without delays and faults. */
export function plainLog(store: LogStore): EventLog {
  const unused = () => {
    throw new Error('only read');
  };
  return {
    append: unused,
    appendTogether: null,
    readStream: async (stream, options) => store.read(stream, options),
    readAll: async ({ after, max, types }) => store.after(after, max, types),
    subscribeAll: unused,
    head: async () => store.events.at(-1)?.position ?? null,
    health: async () => ({ ok: true }),
    close: async () => undefined,
  };
}

// ── jobs and requests ───────────────────────────────────────────────────────────────────────────────────

function checkJobs({ witness, trace }: World): void {
  for (const stream of witness.streams('job-')) {
    const jobId = stream.slice('job-'.length);
    const job = witness.job(jobId);
    if (job.status !== 'completed') {
      witness.violated('jobs_closed', `job ${jobId} is ${job.status}`);
      continue;
    }
    trace.reached(`job ${job.completed.errorCategory ?? 'succeeded'}`);
    if (job.receipt === null) witness.violated('jobs_receipted', `job ${jobId} has no receipt`);
    const hits = witness.hits.filter((hit) => hit.jobId === jobId).length;
    const { errorCategory, status } = job.completed;
    if (status === 'succeeded' && hits === 0)
      witness.violated('outcome_true', `job ${jobId} succeeded without a request`);
    const sent = job.attempts.filter((attempt) => attempt.sent === 'yes').length;
    if (hits < sent)
      witness.violated('outcome_true', `job ${jobId}: ${sent} attempts were sent, ${hits} arrived`);
    const possible = job.attempts.filter((attempt) => attempt.sent !== 'no').length;
    if (hits > possible)
      witness.violated(
        'outcome_true',
        `job ${jobId} (${errorCategory}): ${hits} requests arrived, ${possible} may have been sent`,
      );
  }
  for (const { jobId } of witness.hits)
    if (witness.job(jobId).status === 'absent')
      witness.violated('jobs_closed', `the target got a request of ${jobId}, which does not exist`);
}

const WEEK_MS = 7 * 86_400_000;

/** One intent is served once: by its key, by its payment, or by each of its calls. */
function checkIntents({ witness, intents }: World): void {
  for (const intent of intents) {
    const hits = witness.hits.filter(({ path }) => path === intent.path);
    const jobs = new Map<string, number>();
    for (const { jobId, at } of hits) if (!jobs.has(jobId)) jobs.set(jobId, at);
    const times = [...jobs.values()].sort((a, b) => a - b);
    if (intent.key !== null) {
      const isDouble = times.some((at, i) => i > 0 && at - (times[i - 1] ?? 0) < WEEK_MS);
      if (isDouble)
        witness.violated('key_once', `the key of client ${intent.id} was sent by ${jobs.size} jobs`);
    }
    for (const { hash } of intent.payments) {
      const stream = STREAM.payment(hash);
      const paidJobs = [...jobs.keys()].filter((jobId) => startOf(witness, jobId)?.paymentStream === stream);
      if (paidJobs.length > 1)
        witness.violated('payment_once', `payment ${hash} was sent by ${paidJobs.length} jobs`);
    }
    if (intent.payments.length > 0 || intent.key !== null) continue;
    const nothingSent = intent.calls.filter(
      ({ answer }) => answer?.kind === 'refused' || (answer?.kind === 'fault' && answer.jobId === null),
    ).length;
    if (jobs.size > intent.calls.length - nothingSent)
      witness.violated(
        'nothing_sent',
        `client ${intent.id}: ${jobs.size} jobs were sent for ${intent.calls.length} calls, ${nothingSent} of whose answers say that nothing is sent`,
      );
  }
}

const startOf = (witness: World['witness'], jobId: string) => {
  const job = witness.job(jobId);
  return job.status === 'absent' ? null : job.started;
};

/** No process that lives owes an answer, and none has found a defect in itself. */
function checkRunning({ witness }: World): void {
  for (const host of witness.hosts) for (const bug of host.bugs) witness.violated('no_defect', bug);
  for (const { isResolved, relay, intent } of witness.calls) {
    const host = witness.hosts.find(({ name }) => name === relay);
    if (!isResolved && host?.alive)
      witness.violated('no_promise_pending', `${relay} owes client ${intent.id} an answer`);
  }
}

// ── money ───────────────────────────────────────────────────────────────────────────────────────────────

function checkMoney({ witness, intents, shared: { chain }, trace }: World): void {
  chain.mine();
  const wasReorganised = (trace.counts.get('reorganisation with transfers') ?? 0) > 0;
  const clients = [
    ...intents,
    ...(witness.runs?.orders ?? []).map(({ id, payments }) => ({ id, payments, key: null })),
  ];
  for (const intent of clients) {
    let paid = 0;
    for (const payment of intent.payments) {
      const stream = STREAM.payment(payment.hash);
      const state = witness.payment(stream);
      const end = chain.endOf(payment);
      const isPaid = end?.kind === 'use';
      trace.reached(`payment ${state.status}${isPaid ? ', paid' : ''}`);
      const isCharged = ['settled', 'refunding', 'refunded'].includes(state.status);
      if (isPaid && state.status !== 'refunded') paid++;
      if (isPaid && !isCharged)
        witness.violated('received_is_charged', `payment ${stream} is ${state.status}, and its money came`);
      // Found missing is enough where the facilitator lied or the chain was reorganised; else nothing was to be charged.
      const wasLie = witness.settleKinds.get(stream) === 'settled_without_transfer';
      // It is compared when its recorded time has come.
      const isAhead =
        'settled' in state && Date.parse(state.settled.settledAt) > EPOCH + witness.seen.scheduler.now;
      const isListed = 'missing' in state && state.missing !== null;
      if (!isPaid && (isCharged || isListed) && !wasReorganised && !(wasLie && (isListed || isAhead)))
        witness.violated('charged_is_received', `payment ${stream} is ${state.status}, and no money came`);
      const refunds = chain.transactions.filter(
        ({ block, kind, moves }) =>
          block !== null && kind === 'transfer' && moves.some(({ to }) => to === payment.payer),
      );
      if (state.status === 'refunded' && refunds.length === 0)
        witness.violated('refund_paid', `payment ${stream} is refunded without a transfer`);
      const recorded = witness.seen.log.read(stream).filter(({ type }) => type === 'PaymentRefunded').length;
      if (recorded > 1) witness.violated('refund_once', `payment ${stream} has ${recorded} refunds`);
    }
    const isOld = (trace.counts.get('pause of 8 days') ?? 0) > 0;
    if (intent.key !== null && paid > 1 && !wasReorganised && !isOld)
      witness.violated('charged_once', `client ${intent.id} paid ${paid} times for one key`);
  }
  for (const [stream, count] of witness.settles) {
    const claims = witness.seen.log
      .read(stream)
      .filter(({ type }) => type === 'PaymentReserved' || type === 'SettlementRetried').length;
    if (count > claims) witness.violated('settle_claimed', `${count} settle calls for ${claims} claims`);
  }
}

/** charged = served + refunded + open, by the real fold and by our own count; received = what the chain has. */
async function checkBooks({ witness, shared: { chain, log } }: World): Promise<void> {
  const ledger = await readLedger(plainLog(log));
  for (const balance of balanceOf(ledger))
    if (!balance.balanced) witness.violated('books_balanced', JSON.stringify(balance));
  const [books] = [...ledger.comparisons.values()];
  if (books !== undefined) {
    const received = chain.transactions
      .filter(({ block }) => block !== null && block >= books.fromBlock && block <= books.toBlock)
      .flatMap(({ moves }) => moves.filter(({ to }) => to === PAYEE))
      .reduce((sum, { amount }) => sum + amount, 0n);
    if (books.received !== received)
      witness.violated('received', `the books received ${books.received}, the chain ${received}`);
    if (received !== chain.received(Number.POSITIVE_INFINITY, PAYEE))
      witness.violated('received', 'transfers are outside of the compared blocks');
    if (books.unattributed !== 0n) witness.violated('received', `${books.unattributed} is unattributed`);
  }
  const own = { charged: 0n, served: 0n, refunded: 0n, open: 0n };
  for (const { hash } of witness.payments()) {
    const state = witness.payment(STREAM.payment(hash));
    if (!['settled', 'missing', 'refunding', 'refunded'].includes(state.status) || state.status === 'absent')
      continue;
    const job = witness.job(state.reserved.jobId);
    const isServed = job.status === 'completed' && !boughtNothing(job.completed.errorCategory);
    const amount = BigInt(PRICE);
    own.charged += amount;
    if (state.status === 'refunded') own.refunded += amount;
    else if (isServed) own.served += amount;
    else own.open += amount;
  }
  await witness.runs?.check(ledger, plainLog(log));
  const sums = ledger.books.find(({ network, asset }) => network === NETWORK && asset === ASSET);
  for (const name of ['charged', 'served', 'refunded', 'open'] as const)
    if ((sums?.[name] ?? 0n) !== own[name])
      witness.violated('books_true', `${name} is ${sums?.[name]} in the books, and ${own[name]}`);
}

// ── receipts, checkpoints, rows, audit ──────────────────────────────────────────────────────────────────

async function checkReceipts({ witness, shared: { log } }: World): Promise<void> {
  const judge = receiptJudge({ log: plainLog(log), primitives });
  for (const { type, data, position } of log.events)
    if (type === 'ReceiptSigned' && !(await judge(data as never, position)))
      witness.violated('receipts_verify', `the receipt of ${data.jobId} does not verify`);
  const { keys } = await loadKeyRing({ log: plainLog(log) });
  for (const found of await contradictionsOf(log.events, keys, 'relay.example/receipts'))
    witness.violated('checkpoints_consistent', `checkpoint ${found}`);
}

/** Another process asks again only when an idle log's cosignatures are old. */
const REFRESHED_MS = 4 * 3_600_000;

/** One record for each checkpoint that a quorum has cosigned, whatever number of processes ask. */
function checkCosigned({ witness, shared: { log } }: World): void {
  let [size, at] = [-1, 0];
  for (const { type, data, created } of log.events) {
    if (type !== 'CheckpointCosigned') continue;
    const isAgain = Number(data.size) === size && Date.parse(created) - at > REFRESHED_MS;
    if (Number(data.size) <= size && !isAgain)
      witness.violated('cosigned_once', `size ${data.size} is recorded again after ${size}`);
    [size, at] = [Number(data.size), Date.parse(created)];
  }
}

/** The rows in use equal those that one batch over the whole log makes. */
async function checkRows({ witness, places, shared: { log } }: World): Promise<void> {
  for (const rows of new Set(places.map((place) => place.rows))) {
    const current = rows.current();
    if (current === null) {
      if (log.events.length > 0) witness.violated('rows_rebuild', 'there are no rows');
      continue;
    }
    if (current.head.position !== log.events.at(-1)?.position) continue;
    const difference = differenceOf(current.tables, await rebuilt(log));
    if (difference !== null) witness.violated('rows_rebuild', difference);
  }
}

async function rebuilt(log: LogStore): Promise<Tables> {
  const scheduler = new Scheduler(new Random(1));
  const trace = new Trace(scheduler, false);
  const host = new Host('rebuild', scheduler, new Random(2), trace);
  const storage = new RowStorage();
  const store = simulatedStore(storage, host, { unavailable: 0, lostAnswer: 0 }, { disposable: true, trace });
  let isDone = false;
  const building = (async () => {
    const generation = generationOf(log.events[0]?.id ?? '', 'simulated', READ_MODELS);
    const create = { statements: [], models: READ_MODELS };
    const schema = await (await store.shared()).transaction((tx) =>
      createGeneration(tx, generation, create, 'current'),
    );
    const db = await store.open(schema);
    const judgeReceipt = receiptJudge({ log: plainLog(log), primitives });
    const options = {
      models: READ_MODELS,
      judgeReceipt,
      log: plainLog(log),
      cachedRows: Number.POSITIVE_INFINITY,
    };
    const projection = new Projection(await readHead(db), options);
    await projection.write(db, await projection.fold(db, log.events));
  })().finally(() => {
    isDone = true;
  });
  await scheduler.run(Number.POSITIVE_INFINITY, () => isDone);
  await building;
  const current = storage.current();
  if (current === null) throw new Error('the rebuild made no rows');
  return current.tables;
}

function differenceOf(a: Tables, b: Tables): string | null {
  for (const [name, rows] of b) {
    const its = a.get(name);
    for (const [key, row] of rows) {
      const [found, expected] = [JSON.stringify(its?.get(key)), JSON.stringify(row)];
      if (found !== expected) return `${name} ${key} is ${found} instead of ${expected}`;
    }
    if (its?.size !== rows.size) return `${name} has ${its?.size} rows instead of ${rows.size}`;
  }
  return null;
}

/** Where the facilitator lied or the chain was reorganised, the books have found it: only a charge found missing may be missing. */
async function checkAudit({ witness, shared: { log, chain, isPaid } }: World): Promise<void> {
  const report = ({ kind, message }: { readonly kind: string; readonly message: string }) =>
    witness.violated('audit_clean', `${kind}: ${message}`);
  const auditor = new Auditor({ primitives, scratch: memoryScratch<ScratchRow & Json>(), onFinding: report });
  try {
    for (const event of log.events) await auditor.take(event);
    await auditor.finish();
    if (!isPaid) return;
    const record = auditor.stated;
    const missing = new Set<string | null>();
    for (const { stream, payment } of record.unconfirmed()) if (isMissing(payment)) missing.add(stream);
    await auditAgainstChain({
      record,
      chain: {
        network: async () => NETWORK,
        scanOf: () => ({
          block: async (number) => chain.block(number),
          scan: async (request) => chain.scan(request, () => false),
        }),
        transfersIn: async (transaction) => chain.transfersIn(transaction, ASSET),
        lookUp: async (authorization) => chain.lookUp(authorization),
      },
      onFinding(finding) {
        if (finding.kind !== 'charge_not_on_chain' || !missing.has(finding.stream)) report(finding);
      },
      onChecked: () => undefined,
    });
  } finally {
    auditor.close();
  }
}
