// The test server's subscriptions. Each has its own place in the log and walks to the end, then waits: first the
// confirmation, then what stood there, the word that it caught up, then what comes.
import type { StoredEvent } from './eventstore-server-log.ts';
import {
  caughtUp,
  checkpoint,
  confirmation,
  consumerTooSlow,
  readEvent,
  streamDeleted,
} from './eventstore-server-messages.ts';
import type { ServerNode, Subscription } from './eventstore-server-node.ts';
import type { Outlet } from './eventstore-server-read.ts';

/** Events of one page that a real server reads. */
export const PAGE = 32;

export type AllFilter = {
  passes(event: StoredEvent): boolean;
  /** Events that one page of the catching up looks at. */
  readonly window: number;
  /** Events looked at between two checkpoints. */
  readonly checkpointEvery: number;
};

/** `after`: exclusive; null for the start. */
export async function subscribeToAll(
  node: ServerNode,
  outlet: Outlet,
  after: bigint | 'end' | null,
  filter: AllFilter | null,
): Promise<void> {
  const { log } = node;
  // The real server reads one event from the position on, and begins behind it.
  let at = after === 'end' ? log.events.length : after === null ? 0 : log.indexAt(after) + 1;
  const checkpoints = filter && checkpointsOf(filter, log.events[at - 1]?.end ?? 0n);
  await follow(node, outlet, {
    next: () => {
      const event = log.events[at];
      if (event !== undefined) at++;
      return event;
    },
    look: async (event) => {
      const passes = filter === null || filter.passes(event);
      if (passes && !(await outlet.send(readEvent(event)))) return false;
      const due = checkpoints?.look(event, passes) ?? null;
      return due === null || outlet.send(checkpoint(due.commit, due.prepare));
    },
    isThere: () => true,
    caughtUp: () => checkpoints?.goLive(),
  });
}

type Position = { readonly commit: bigint; readonly prepare: bigint };

/** Says which checkpoint is due after an event that was looked at. */
function checkpointsOf({ window, checkpointEvery }: AllFilter, start: bigint) {
  let live = false;
  let looked = 0;
  const newPage = (began: bigint) => ({ looked: 0, passed: 0, at: { commit: began, prepare: 0n } });
  let page = newPage(start);

  /** Live ones come exactly in time and name the event. */
  function lookLive(event: StoredEvent): Position | null {
    if (looked < checkpointEvery) return null;
    looked = 0;
    return { commit: event.position, prepare: event.position };
  }

  /** While catching up they come between pages, and name the page's last event that passed, or where it began. */
  function lookPage(event: StoredEvent, passes: boolean): Position | null {
    page.looked++;
    if (passes) {
      page.passed++;
      page.at = { commit: event.position, prepare: event.position };
    }
    if (page.looked < window && page.passed < PAGE) return null;
    const { at } = page;
    page = newPage(event.end);
    if (looked < checkpointEvery) return null;
    looked %= checkpointEvery;
    return at;
  }

  return {
    look: (event: StoredEvent, passes: boolean): Position | null => {
      looked++;
      return live ? lookLive(event) : lookPage(event, passes);
    },
    goLive: () => {
      live = true;
    },
  };
}

/** `after`: exclusive; null for the start. A stream that is not there yet is waited for. */
export async function subscribeToStream(
  node: ServerNode,
  outlet: Outlet,
  name: string,
  after: bigint | 'end' | null,
): Promise<void> {
  const { log } = node;
  const content = log.stream(name);
  if (content.kind === 'deleted') return outlet.end(streamDeleted(name));
  const length = content.kind === 'events' ? content.events.length : 0;
  let at = after === 'end' ? length : after === null ? 0 : Number(after) + 1;
  await follow(node, outlet, {
    next: () => {
      const now = log.stream(name);
      if (now.kind === 'deleted') outlet.end(streamDeleted(name));
      if (now.kind !== 'events') return undefined;
      at = Math.max(at, now.first);
      const event = now.events[at];
      if (event !== undefined) at++;
      return event;
    },
    look: (event) => outlet.send(readEvent(event)),
    isThere: () => after === 'end' || log.stream(name).kind === 'events',
    caughtUp: () => undefined,
  });
}

type Walk = {
  /** undefined: nothing there yet. */
  next(): StoredEvent | undefined;
  /** false: the subscriber has gone. */
  look(event: StoredEvent): Promise<boolean>;
  /** There is something to have caught up with. */
  isThere(): boolean;
  caughtUp(): void;
};

async function follow(node: ServerNode, outlet: Outlet, walk: Walk): Promise<void> {
  let wake = () => {};
  const stopListening = node.log.onAppend(() => wake());
  outlet.onGone(() => wake());
  const subscription: Subscription = { drop: (reason) => outlet.end(reason) };
  node.subscriptions.add(subscription);
  /** null until it caught up. */
  let seenLive: number | null = null;
  await outlet.send(confirmation());
  while (!outlet.isGone()) {
    const event = walk.next();
    if (event !== undefined) {
      await walk.look(event);
      if (seenLive !== null && ++seenLive === node.armed.tooSlowAfter) outlet.end(consumerTooSlow());
    } else if (seenLive === null && walk.isThere()) {
      seenLive = 0;
      walk.caughtUp();
      await outlet.send(caughtUp());
    } else if (!outlet.isGone()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  node.subscriptions.delete(subscription);
  stopListening();
}
