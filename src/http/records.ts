// Records by their ids, and the miss rule: a row that is missing or not final is answered only once the read models have
// reached the event log's head as read at the request.
import type { TSchema } from '@sinclair/typebox';
import type { RouteFacts } from '#src/discovery/routes.ts';
import { ID_PATTERN } from '#src/domain/ids.ts';
import { Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { ProgressOf } from '#src/http/deps.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

const IDS = {
  job: new RegExp(ID_PATTERN.job),
  receipt: new RegExp(ID_PATTERN.receipt),
  decision: new RegExp(ID_PATTERN.decision),
};
type Kind = keyof typeof IDS;

export const recordEndpoint = (
  route: RouteFacts,
  kind: Kind,
  body: TSchema,
  answer: (id: string) => Promise<object>,
): Endpoint =>
  endpoint(
    route,
    {
      id: { description: `Identifier of the ${kind}.`, pattern: ID_PATTERN[kind] },
      answers: { 200: [`The ${kind}.`, body] },
      errors: {
        404: `No such ${kind}.`,
        503: `The read models${kind === 'receipt' ? ' or the event log' : ''} are unavailable or not up to date.`,
      },
    },
    ({ id }) => answer(id),
  );

export const isIdOf = (kind: Kind, id: string): boolean => IDS[kind].test(id);

/** Receipts are answered from the log after their retention. */
export const recordNotFound = (kind: Kind) => {
  const missing = `There is no such ${kind}`;
  return refused(
    `${kind}_not_found`,
    kind === 'receipt' ? `${missing}.` : `${missing}, or it is no longer retained.`,
  );
};

/** As `findForSure`; an id of another form names no record. */
export async function findById<T extends object>(
  progress: ProgressOf<'reachedHead'>['progress'],
  kind: Kind,
  id: string,
  find: (id: string) => Promise<T | Refused | null>,
  isFinal?: (found: T) => boolean,
): Promise<T | Refused> {
  if (!isIdOf(kind, id)) return recordNotFound(kind);
  return findForSure<T, Refused>(progress, () => find(id), recordNotFound(kind), isFinal);
}

/**
 * `find` returns null, or a refusal that a later event may reverse (`receipt_not_ready`). `isFinal`: whether no later event
 * changes what was found; otherwise it is read again at the head. Waits at most 1 s; throws `Fault` if the head is not
 * reached.
 */
export async function findForSure<T extends object, R extends Refused>(
  progress: ProgressOf<'reachedHead'>['progress'],
  find: () => Promise<T | R | null>,
  missing: R,
  isFinal: (found: T) => boolean = () => true,
): Promise<T | R> {
  const answers = (found: T | R | null): found is T => found !== null && !isRefused(found);
  const first = await find();
  if (answers(first) && isFinal(first)) return first;
  const caughtUp = await progress.reachedHead();
  const second = await find();
  if (answers(second) && (caughtUp || isFinal(second))) return second;
  // What was there a moment ago cannot be missing: the rows are being replaced.
  if (!caughtUp || (second === null && first !== null)) {
    throw new Fault('read_models_unavailable', 'The records are not up to date: try again shortly.', {
      retryAfterSeconds: 1,
    });
  }
  return second ?? missing;
}
