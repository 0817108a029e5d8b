// Given events, when a command, then events or a refusal: strict, ordered, whole-event equality.
// The events of both sides must fit their schemas, so that no test speaks of what no log could hold.
import assert from 'node:assert/strict';
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { ClaimEvent, JobEvent, KeyEvent, PaymentEvent } from '#src/domain/events.ts';
import { absentJob, evolveJob } from '#src/domain/job/state.ts';
import { evolveClaim, freeClaim } from '#src/domain/payment/claim.ts';
import { absentPayment, evolvePayment } from '#src/domain/payment/state.ts';
import { evolveKeys, type KeyRecord } from '#src/domain/signing-keys/keys.ts';

type AnyEvent = JobEvent | PaymentEvent | ClaimEvent | KeyEvent;

function isDecodable(event: AnyEvent): void {
  const stored = JSON.parse(JSON.stringify(event));
  assert.deepEqual(decodeEvent(stored), event, `${event.type} does not fit its schema`);
}

function story<S, E extends AnyEvent>(initial: S, evolve: (state: S, event: E) => S) {
  return (...events: readonly E[]) => {
    events.forEach(isDecodable);
    const state = events.reduce(evolve, initial);
    return {
      state,
      when(command: (state: S) => readonly E[] | object) {
        const result = command(state);
        return {
          thenEvents(...expected: readonly E[]) {
            const events = { kind: 'events', events: expected };
            assert.deepEqual(result, Array.isArray(result) ? expected : events);
            expected.forEach(isDecodable);
          },
          thenImpossible(why: string) {
            assert.deepEqual(result, { kind: 'impossible', why });
          },
          thenAnswer(answer: object) {
            assert.deepEqual(result, answer);
          },
        };
      },
    };
  };
}

export const givenJob = story(absentJob, evolveJob);
export const givenPayment = story(absentPayment, evolvePayment);
export const givenClaim = story(freeClaim, evolveClaim);
export const givenKeys = story<readonly KeyRecord[], KeyEvent>([], evolveKeys);
