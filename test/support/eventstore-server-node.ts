// What every call of the test server asks before it acts: is the caller let in, is its connection still there, which
// fault is armed.

import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { ServerSurfaceCall } from '@grpc/grpc-js/build/src/server-call.js';
import type { Front } from './eventstore-server-front.ts';
import type { ServerLog } from './eventstore-server-log.ts';
import { type Fault, fault } from './eventstore-server-messages.ts';

export type Credentials = { readonly username: string; readonly password: string };

/** Counts of appends that are still to fail. */
export type ArmedFaults = {
  slowMs: number;
  loseAnswers: number;
  /** Answers of its appends are not lost; null: of none. */
  sparedStream: string | null;
  refuseAppends: number;
  /** Live events after which a subscriber is dropped as too slow; null: never. */
  tooSlowAfter: number | null;
};

export type Subscription = { drop(reason: Fault): void };

export type ServerNode = {
  readonly log: ServerLog;
  readonly front: Front;
  readonly armed: ArmedFaults;
  /** Open subscriptions. */
  readonly subscriptions: Set<Subscription>;
  /** null: let in. */
  admit(call: ServerSurfaceCall): Fault | null;
  /** Resolves when the node gets to the call; false: the connection is gone, and the call with it. */
  turn(call: ServerSurfaceCall): Promise<boolean>;
};

export function serverNode(log: ServerLog, front: Front, credentials: Credentials | undefined): ServerNode {
  const armed: ArmedFaults = {
    slowMs: 0,
    loseAnswers: 0,
    sparedStream: null,
    refuseAppends: 0,
    tooSlowAfter: null,
  };
  const expected = credentials && `Basic ${btoa(`${credentials.username}:${credentials.password}`)}`;
  return {
    log,
    front,
    armed,
    subscriptions: new Set(),
    admit(call) {
      const given = call.metadata.get('authorization')[0];
      if (expected === undefined || given === expected) return null;
      if (given !== undefined) return fault(status.UNAUTHENTICATED, 'Unauthenticated');
      return fault(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
    },
    async turn(call) {
      if (armed.slowMs > 0) await sleep(armed.slowMs);
      return front.isOpen(call.getPeer());
    },
  };
}
