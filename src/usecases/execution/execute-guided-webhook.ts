// The decision-first execution: a recorded decision, read from its stream, approves the action or not. Everything else is
// the paid execution's, which judges the approval for new calls only.
import { actionHash, decisionHash, judgeApproval } from '#src/domain/decision/approval.ts';
import type { DecisionRecorded } from '#src/domain/events/decision.ts';
import { STREAM } from '#src/domain/events.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { readRequest } from '#src/usecases/decisions/judge-request.ts';
import { eventIn } from '#src/usecases/process/read-events.ts';
import { withinDeadline } from '#src/usecases/response-deadline.ts';
import { type ExecuteDeps, executeWebhook } from './execute-webhook.ts';
import type { ExecuteInput, Execution } from './execution-call.ts';

export type GuidedInput = Pick<ExecuteInput, 'presented' | 'payer' | 'client' | 'via' | 'returnsResponse'> & {
  readonly decisionId: string;
  /** Valid by its schema. */
  readonly action: WebhookRequest;
};

export type Guided = {
  readonly execution: Execution;
  readonly decision: Pick<DecisionRecorded, 'decisionId' | 'recommendation' | 'confidence'>;
};

/** Throws `Fault` as the paid execution does. */
export async function executeGuidedWebhook(
  deps: ExecuteDeps,
  { decisionId, action, ...caller }: GuidedInput,
): Promise<Guided | Refused> {
  const read = readRequest(action, '/action');
  if (isRefused(read)) return read;
  const again = caller.presented === null ? '' : ' Repeat with the same payment header.';
  const outcome = `the decision could not be read, nothing was sent.${again}`;
  const found = await withinDeadline(deps, outcome, () => findDecision(deps, decisionId));
  const execution = await executeWebhook(deps, {
    request: action,
    route: 'execute/guided-webhook',
    decisionId,
    decisionHash: found?.hash ?? null,
    approval: judgeApproval(found?.decision ?? null, {
      actionHash: actionHash(read.request, deps.keyedHash),
      nowMs: deps.clock.now(),
    }),
    ...caller,
  });
  if (isRefused(execution)) return execution;
  if (found === null) throw new Error('a job refers to a decision that is not in the event log');
  const { recommendation, confidence } = found.decision;
  return { execution, decision: { decisionId, recommendation, confidence } };
}

type Found = { readonly decision: DecisionRecorded; readonly hash: string };

const WELL_FORMED = new RegExp(ID_PATTERN.decision);

/** Only a well-formed id makes the name of a stream. */
async function findDecision({ log }: { readonly log: EventLog }, decisionId: string): Promise<Found | null> {
  if (!WELL_FORMED.test(decisionId)) return null;
  const [recorded] = await log.readStream(STREAM.decision(decisionId), { max: 1 });
  if (recorded === undefined) return null;
  const event = eventIn(recorded);
  if (event.type !== 'DecisionRecorded') throw new Error('an event of a decision cannot be read');
  return { decision: event.data, hash: decisionHash(recorded.data) };
}
