// Which events this release reads. One of another type, or of a higher version, is not malformed: a newer release wrote it.
import type { RecordedEvent } from './event-codec.ts';
import { EVENT_TYPES, EVENTS, type EventType } from './events.ts';

/** Type and version of an event that only a newer release reads. */
export type NewerKind = { readonly type: string; readonly version: number };

/** As in "JobStarted version 3". */
export const newerText = ({ type, version }: NewerKind): string => `${type} version ${version}`;

/**
 * Its version is above those of its type, or its type is unknown, and it has a version as every event of this service; null:
 * this release reads it, or no release does.
 */
export function newerKind({ type, data }: Pick<RecordedEvent, 'type' | 'data'>): NewerKind | null {
  const version = data?.v;
  if (typeof version !== 'number' || !Number.isSafeInteger(version)) return null;
  return version > (NEWEST.get(type) ?? 0) ? { type, version } : null;
}

const versionsOf = (type: EventType): readonly number[] => Object.keys(EVENTS[type].versions).map(Number);

const NEWEST: ReadonlyMap<string, number> = new Map(
  EVENT_TYPES.map((type) => [type, Math.max(...versionsOf(type))]),
);

/** All types with their versions, as one text: releases that read other events have another one. */
export const READ_VERSIONS: string = EVENT_TYPES.map((type) => `${type}:${versionsOf(type)}`)
  .sort()
  .join(' ');
