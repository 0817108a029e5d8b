// Defects that are put back to prove that the simulation sees them: each replaces texts of modules, in the memory of the
// worker that runs it. Among them are faults that this service had.
import type { Change } from './alter-module.ts';

export type Defect = {
  readonly name: string;
  readonly what: string;
  readonly changes: readonly Change[];
  /** It is seen within the first so many seeds. */
  readonly within: number;
};

const at = (file: string, find: string, replace: string): Change => ({ file, find, replace });

const EXECUTION = 'src/usecases/execution';

export const DEFECTS: readonly Defect[] = [
  {
    name: 'settles_again_without_claim',
    what: 'a repeat after a lost answer settles again without a claim of its own',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/settle-payment.ts`,
        '  const claimed = await settling.call.deadline.forAppend(append(deps, PAYMENT, view, [retried]));\n',
        '  const claimed = view;\n  void retried;\n',
      ),
    ],
  },
  {
    name: 'nonce_used_is_paid',
    what: "the facilitator's answer that the nonce is used counts as paid",
    within: 250,
    changes: [
      at(
        'src/domain/payment/settlement.ts',
        '  const proven = reconcile(finding, payment, at);\n',
        "  if (answer.outcome === 'unknown' && answer.cause.endsWith('already_used')) return paymentSettled(payment, null, 'chain', at);\n  const proven = reconcile(finding, payment, at);\n",
      ),
    ],
  },
  {
    name: 'final_refusal_without_chain',
    what: 'a final refusal ends the payment whatever the chain shows',
    within: 250,
    changes: [
      at(
        'src/domain/payment/settlement.ts',
        '  const proven = reconcile(finding, payment, at);\n',
        "  if (answer.outcome === 'rejected') return paymentRejected(payment, answer.reason, 'facilitator', at);\n  const proven = reconcile(finding, payment, at);\n",
      ),
    ],
  },
  {
    name: 'unused_is_over',
    what: 'an unused authorization counts as over before it has expired',
    within: 250,
    changes: [
      at(
        'src/domain/payment/state.ts',
        '      return isSurelyOver(payment.reserved, finding.chainTimeSeconds)\n',
        '      return finding.chainTimeSeconds > 0\n',
      ),
    ],
  },
  {
    name: 'settles_before_key_is_claimed',
    what: 'the idempotency key is not claimed before the settle call',
    within: 200,
    changes: [
      at(
        `${EXECUTION}/execute-webhook.ts`,
        '  if (view !== null && isNew) {\n',
        '  if (view !== null && isNew && deps.exclusive === null) {\n',
      ),
    ],
  },
  {
    name: 'key_released_while_unconfirmed',
    what: 'a key is released while the payment of its holder is unconfirmed',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/idempotency.ts`,
        "  if (payment.status === 'rejected') return 'payment_rejected';\n",
        "  if (payment.status === 'rejected' || payment.status === 'unknown') return 'payment_rejected';\n",
      ),
    ],
  },
  {
    name: 'key_released_by_age',
    what: 'a key is released a minute after its claim, whatever became of its job',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/idempotency.ts`,
        '  { jobId, paymentStream }: IdempotencyKeyClaimed,\n): Promise<Holder> {\n',
        "  { jobId, paymentStream, claimedAt }: IdempotencyKeyClaimed,\n): Promise<Holder> {\n  if (deps.clock.now() - Date.parse(claimedAt) > 60_000) return { job: null, release: 'retention_over', paid: null };\n",
      ),
    ],
  },
  {
    name: 'answered_key_forgotten',
    what: 'a key is free 20 seconds after the completion of its job',
    within: 250,
    changes: [
      at(
        'src/domain/payment/claim.ts',
        'Date.parse(completedAt) + TIMES.idempotencyRetentionMs',
        'Date.parse(completedAt) + 20_000',
      ),
    ],
  },
  {
    name: 'replay_lost_after_days',
    what: 'the replay of a payment is not found two days after its job',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/idempotency.ts`,
        "    return reused;\n  }\n  if (job !== null) return { ...job, by: 'payment' };\n",
        "    return reused;\n  }\n  const age = job?.kind === 'completed' ? deps.clock.now() - Date.parse(job.job.completed.completedAt) : 0;\n  if (job !== null && age < 2 * 86_400_000) return { ...job, by: 'payment' };\n",
      ),
    ],
  },
  {
    name: 'repeat_ignores_fingerprint',
    what: 'a payment or key serves any request',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/idempotency.ts`,
        '  if (reserved.fingerprint !== lookup.fingerprint) {\n',
        "  if (reserved.fingerprint === '') {\n",
      ),
    ],
  },
  {
    name: 'interrupted_job_resent',
    what: 'a job found running is run again',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/idempotency.ts`,
        "    deps.foundRunning(jobId);\n    return { kind: 'refused', refusal: inProgress(jobId) };\n",
        '    deps.foundRunning(jobId);\n    return null;\n',
      ),
      at(
        `${EXECUTION}/run-job.ts`,
        '  await appendUntilKnown(deps, append.stream, append.expected, append.events);\n',
        '  await appendUnlessOvertaken(deps, append, append.events);\n',
      ),
    ],
  },
  {
    name: 'sent_before_start_is_durable',
    what: 'the request is sent before JobStarted is acknowledged',
    within: 200,
    changes: [
      at(
        `${EXECUTION}/run-job.ts`,
        '  await appendUntilKnown(deps, append.stream, append.expected, append.events);\n',
        '  void appendUntilKnown(deps, append.stream, append.expected, append.events);\n',
      ),
    ],
  },
  {
    name: 'retry_before_announcement',
    what: 'the next attempt is sent before the last one is recorded',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/run-job.ts`,
        '  if ((await appendUnlessOvertaken(deps, place, events)) === null) return closeNotExecuted(deps, jobId);\n  await deps.clock.sleep(waitMs);\n',
        '  void appendUnlessOvertaken(deps, place, events);\n  await deps.clock.sleep(0 * waitMs);\n',
      ),
    ],
  },
  {
    name: 'start_after_refund',
    what: 'a job starts although the refund of its payment has begun',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/run-job.ts`,
        "  return started(paid === null || paid.state.status === 'settled');\n",
        "  return started(paid === null || paid.stream !== '');\n",
      ),
    ],
  },
  {
    name: 'settled_start_is_not_durable',
    what: 'a start that is stored with its settlement is sent before it is acknowledged',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/settle-payment.ts`,
        '  if ((await orNull(together.finally(acknowledged))) === null) return null;\n',
        '  void orNull(together.finally(acknowledged));\n',
      ),
    ],
  },
  {
    name: 'late_start_is_sent',
    what: 'a start that is acknowledged after its lease is sent',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/run-job.ts`,
        '      const late = deps.clock.monotonic() - begun >= running.state.started.leaseMs;\n',
        '      const late = begun < 0;\n',
      ),
    ],
  },
  {
    name: 'answered_503_is_sent',
    what: 'a call without key and payment is sent after its answer 503',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/execute-webhook.ts`,
        '  if (deadline.hasPassed() && isAnonymous(call)) throw new EventLogUnavailable();\n',
        '',
      ),
      at(
        `${EXECUTION}/execute-webhook.ts`,
        '  if (!call.deadline.hasPassed() || !isAnonymous(call))\n',
        '  if (call.lookup !== null)\n',
      ),
    ],
  },
  {
    name: 'answer_before_durable',
    what: 'the receipt is answered before its append is acknowledged',
    within: 200,
    changes: [
      at(
        `${EXECUTION}/close-job.ts`,
        '  if ((await appendUnlessOvertaken(deps, place, events, options)) === null) return null;\n',
        '  void appendUnlessOvertaken(deps, place, events, options);\n',
      ),
    ],
  },
  {
    name: 'new_ids_on_repeat',
    what: 'a repeated append has new event ids',
    within: 250,
    changes: [
      at(
        'src/usecases/process/stream.ts',
        'untilKnown(deps, events, () => deps.log.append(stream, expected, events));\n',
        'untilKnown(deps, events, () => deps.log.append(stream, expected, events.map((event) => ({ ...event, id: deps.entropy.uuid() }))));\n',
      ),
    ],
  },
  {
    name: 'append_given_up',
    what: 'an append of unknown fate is not repeated',
    within: 250,
    changes: [
      at(
        'src/usecases/process/stream.ts',
        '      if (!(error instanceof EventLogUnavailable) || deps.ending?.aborted) throw error;\n',
        '      if (pause > 0) throw error;\n',
      ),
    ],
  },
  {
    name: 'lease_by_wall_clock',
    what: 'recovery compares leases with the wall clock',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/recover-jobs.ts`,
        '  const unchanged = watch.unchangedFor(view);\n',
        '  const unchanged = deps.clock.now() - Date.parse(view.state.started.startedAt) + 0 * watch.unchangedFor(view);\n',
      ),
    ],
  },
  {
    name: 'recovery_without_observation',
    what: 'recovery closes what it has not observed for the lease',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/recover-jobs.ts`,
        "  if (!orphaned && unchanged < leaseMs + TIMES.recoveryGraceMs) return 'running';\n",
        "  if (!orphaned && unchanged < Math.min(0, leaseMs)) return 'running';\n",
      ),
    ],
  },
  {
    name: 'recovery_closes_nothing',
    what: 'interrupted jobs are never closed',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/recover-jobs.ts`,
        "  if (view.state.status !== 'running') return 'ended';\n",
        "  if (view.state.status !== 'completed') return 'ended';\n",
      ),
    ],
  },
  {
    name: 'quota_on_resume',
    what: 'a resumed payment takes a unit of the quota again',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/execute-webhook.ts`,
        '  const { jobId, streams } = known;\n  const { payment } = streams;\n',
        "  const { jobId, streams } = known;\n  const { payment } = streams;\n  if (known.kind === 'resume') await takeQuota(deps, call.read.target, call.payer);\n",
      ),
    ],
  },
  {
    name: 'quota_taken_twice',
    what: 'a new call takes two units of the quota',
    within: 250,
    changes: [
      at(
        `${EXECUTION}/execute-webhook.ts`,
        '  const quota = await takeQuota(deps, call.read.target, call.payer);\n',
        '  await takeQuota(deps, call.read.target, call.payer);\n  const quota = await takeQuota(deps, call.read.target, call.payer);\n',
      ),
    ],
  },
  {
    name: 'refund_recorded_twice',
    what: 'a refund that is recorded already is recorded again',
    within: 250,
    changes: [
      at(
        'src/domain/payment/refund.ts',
        "  if (payment.status === 'refunded' && payment.refunded.transaction === transaction)\n    return { kind: 'events', events: [] };\n  if (payment.status !== 'refunding'",
        "  if (payment.status !== 'refunded' && payment.status !== 'refunding'",
      ),
      at(
        'src/domain/payment/refund.ts',
        "  const again = payment.status === 'refunding' ? []",
        "  const again = payment.status === 'refunding' || payment.status === 'refunded' ? []",
      ),
    ],
  },
  {
    name: 'transfer_not_recorded',
    what: 'the comparison with the chain records no charge that the books lack',
    within: 250,
    changes: [
      at(
        'src/usecases/reconciliation/settle-transfers.ts',
        "      if (verdict.kind !== 'settles' && verdict.kind !== 'corrects')\n        return { events: [], answer: verdict.kind };\n",
        "      if (verdict.kind !== 'corrects') return { events: [], answer: verdict.kind === 'settles' ? 'confirmed' : verdict.kind };\n",
      ),
    ],
  },
  {
    name: 'missing_charge_not_found',
    what: 'a charge without a transfer is not found missing',
    within: 250,
    changes: [
      at(
        'src/domain/payment/reconciliation.ts',
        "  if (!('settled' in payment) || !isCharged(payment)) return null;\n",
        "  if (finding !== null || !('settled' in payment) || !isCharged(payment)) return null;\n",
      ),
    ],
  },
  {
    name: 'reorganisation_ignored',
    what: 'the comparison continues behind a block that is not in the chain any more',
    within: 250,
    changes: [
      at(
        'src/usecases/reconciliation/reconcile-chain.ts',
        '    if (block === null || block.hash === known.blockHash) return',
        "    if (block === null || block.hash !== '') return",
      ),
    ],
  },
  {
    name: 'projector_skips',
    what: 'the projector drops events that arrived while it wrote a batch',
    within: 250,
    changes: [
      at(
        'projections/session.ts',
        '      this.queue.dropThrough(last.position);\n',
        '      this.queue.dropThrough(this.queue.last ?? last.position);\n',
      ),
    ],
  },
  {
    name: 'projector_doubles',
    what: 'events that another process has projected are projected again',
    within: 250,
    changes: [
      at('projections/session.ts', '    this.queue.dropThrough(this.#rows.head.position);\n', ''),
      at('projections/fold.ts', '    if (stored !== null && stored.position >= position) continue;\n', ''),
    ],
  },
  {
    name: 'calls_over_cut_history',
    what: 'calls are taken over a log that lacks events',
    within: 1000,
    changes: [
      at(
        'src/usecases/transparency/checkpoint-state.ts',
        'forgotten: known !== null && contradicts(fact.last, known) };',
        'forgotten: known !== null && known.size < 0 };',
      ),
    ],
  },
  {
    name: 'checkpoint_repeated',
    what: 'a checkpoint is signed without new leaves',
    within: 200,
    changes: [
      at(
        'src/domain/transparency/checkpoint.ts',
        "  return { kind: rows.size === last.size ? 'rest' : 'sign' };\n",
        "  return { kind: rows.size < last.size ? 'rest' : 'sign' };\n",
      ),
    ],
  },
  {
    name: 'key_retired_at_once',
    what: 'the retirement of a key takes effect at once',
    within: 250,
    changes: [
      at(
        'src/usecases/signing-keys/change-keys.ts',
        'effectiveAt: iso(from + NOTICE_MS)',
        'effectiveAt: iso(Math.min(from, now))',
      ),
    ],
  },
  {
    name: 'unannounced_key_signs',
    what: 'a process signs with a key that the event log does not have yet',
    within: 250,
    changes: [
      at(
        'src/domain/signing-keys/keys.ts',
        '    const record = key.purpose === purpose ? recordOf(key, announced) : null;\n    if (record === null',
        '    const first = { ...key, purpose, notBefore: 0, notAfter: null, compromisedAt: null };\n    const record = key.purpose === purpose ? (recordOf(key, announced) ?? first) : null;\n    if (record === null',
      ),
    ],
  },
  {
    name: 'retired_key_signs',
    what: 'a key signs after its retirement',
    within: 250,
    changes: [
      at(
        'src/domain/signing-keys/keys.ts',
        '    const record = key.purpose === purpose ? recordOf(key, announced) : null;\n    if (record === null || !keyOpenAt(record, at)) continue;',
        '    const record = key.purpose === purpose ? recordOf(key, announced) : null;\n    if (record === null || record.notBefore < 0) continue;\n    if (record.notAfter !== null) return key;',
      ),
    ],
  },
  {
    name: 'witness_cosigns_any',
    what: 'a witness cosigns a checkpoint that does not extend the last one',
    within: 400,
    changes: [
      at(
        'src/usecases/witness/add-checkpoint.ts',
        '      const refusal = judgeSubmission(submission, last);\n',
        '      const refusal = null as ReturnType<typeof judgeSubmission>;\n',
      ),
    ],
  },
  {
    name: 'witness_not_believed',
    what: 'what witnesses show of a longer log is ignored',
    within: 400,
    changes: [
      at(
        'src/usecases/transparency/witness-evidence.ts',
        '      if (found === null) return false;\n',
        "      if (found === null || witness !== '') return false;\n",
      ),
      at(
        'src/usecases/transparency/witness-evidence.ts',
        "known.record({ kind: 'witness_claims', claims })",
        'void claims',
      ),
    ],
  },
  {
    name: 'cosigned_twice',
    what: 'a checkpoint that another process has recorded as cosigned is recorded again',
    within: 250,
    changes: [
      at(
        'src/usecases/witnesses/cosigned-record.ts',
        '    if (appended === null) return false;\n',
        '    if (appended === null) {\n      await this.read();\n      return this.append({ origin, size, root, note }, cosignatures, policy);\n    }\n',
      ),
    ],
  },
  {
    name: 'run_has_two_winners',
    what: 'a process executes a run that another one has won',
    within: 400,
    changes: [
      at(
        'src/usecases/schedules/runner.ts',
        '    if (after !== null) this.#runs.begin(after, ticket, place);\n    else place();\n',
        '    this.#runs.begin(after ?? view, ticket, place);\n',
      ),
    ],
  },
  {
    name: 'run_settled_before_due',
    what: 'a run starts ten seconds before it is due',
    within: 400,
    changes: [
      at(
        'src/usecases/schedules/runner.ts',
        '      const isDue = Date.parse(ticket.dueAt) <= this.#deps.clock.now();\n',
        '      const isDue = Date.parse(ticket.dueAt) <= this.#deps.clock.now() + 10_000;\n',
      ),
      at('src/usecases/schedules/runner.ts', 'candidates(clock.now(), ', 'candidates(clock.now() + 10_000, '),
    ],
  },
  {
    name: 'run_starts_when_cancelled',
    what: 'a run of a cancelled schedule starts',
    within: 400,
    changes: [
      at(
        'src/usecases/schedules/runner.ts',
        "    if (state.status === 'cancelled') return endRun(this.#deps, view, ticket, 'cancelled');\n",
        '',
      ),
      at(
        'src/usecases/schedules/end-run.ts',
        "        view = view && (await endRun(deps, view, ticket, 'cancelled'));\n",
        '        void ticket;\n',
      ),
      at(
        'src/domain/schedule/commands.ts',
        "  if (status === 'cancelled' || ticket.status !== 'funded') return null;\n",
        "  if (status === undefined || ticket.status !== 'funded') return null;\n",
      ),
    ],
  },
  {
    name: 'run_charged_after_cancellation',
    what: 'a run that has started and is tried again is charged after its cancellation was acknowledged',
    within: 800,
    changes: [
      at(
        `${EXECUTION}/run-due.ts`,
        '  if (cancelled === undefined) return ALLOWED;\n',
        '  if (cancelled === undefined || paymentStream !== null) return ALLOWED;\n',
      ),
      at(
        'src/usecases/schedules/runner.ts',
        "    if (view.state.status === 'cancelled') {\n",
        "    if (view.state.status === 'cancelled' && tryAppend === null) {\n",
      ),
      at(
        'src/usecases/schedules/end-run.ts',
        '      for (const ticket of view?.state.tickets ?? [])\n',
        "      for (const ticket of view?.state.tickets.filter((one) => one.status === 'funded') ?? [])\n",
      ),
    ],
  },
  {
    name: 'node_forgets_a_log',
    what: "a round counts although the payee's balance shows a transfer that the node has left out",
    within: 250,
    changes: [
      at(
        'src/usecases/reconciliation/read-blocks.ts',
        '  if (units.difference !== 0n) {\n',
        '  if (units.difference < -1n) {\n',
      ),
    ],
  },
  {
    name: 'payment_key_kept',
    what: 'the key of the payment of a run is kept after its end',
    within: 400,
    changes: [
      at('src/usecases/schedules/end-run.ts', '.remove([ticket.jobId, ...(await', '.remove([...(await'),
    ],
  },
  {
    name: 'run_executed_under_new_job',
    what: 'a run is executed under another job than the one of its purchase',
    within: 400,
    changes: [
      at(
        `${EXECUTION}/execute-webhook.ts`,
        "  const jobId = call.run?.jobId ?? makeId('job', deps.entropy.bytes(16));\n",
        "  const jobId = makeId('job', deps.entropy.bytes(16));\n",
      ),
    ],
  },
  {
    name: 'skipped_payment_not_released',
    what: 'the payment of a run that is skipped stays bound to it',
    within: 400,
    changes: [
      at(
        `${EXECUTION}/release-payment.ts`,
        '    if (!isOpen || reservationIn',
        "    if (from === 'pledged' || !isOpen || reservationIn",
      ),
    ],
  },
  {
    name: 'stranger_funds_run',
    what: 'anyone who has the id of a schedule buys runs of it',
    within: 400,
    changes: [
      at(
        'src/usecases/schedules/buy-run.ts',
        '  if (!mayFund) return notYours();\n',
        '  void mayFund, notYours;\n',
      ),
    ],
  },
  {
    name: 'restored_snapshot_sends_again',
    what: 'a payment that the chain shows as used, before the log has reserved it, buys its run',
    within: 400,
    changes: [
      at(
        'src/domain/payment/state.ts',
        "  payment.status === 'settled' && payment.reserved.owner === UNRESERVED;\n",
        "  payment.status === 'settled' && payment.reserved.owner === UNRESERVED && payment.reserved.jobId === '';\n",
      ),
      at(
        `${EXECUTION}/idempotency.ts`,
        '  if (reserved.fingerprint !== lookup.fingerprint) {\n',
        '  if (reserved.fingerprint !== lookup.fingerprint && lookup.scheduleId === null) {\n',
      ),
    ],
  },
  {
    name: 'lost_dns_ends_run',
    what: 'a run ends as refused by its target when a lookup of its name has no answer',
    within: 400,
    changes: [
      at(
        'src/usecases/schedules/try-run.ts',
        '    (isRetryable && details.retryable === true)\n',
        "    (isRetryable && details.retryable === 'always')\n",
      ),
    ],
  },
];
