// Reads everything that an event log has stored, also behind damage: for audits, exports and scrubs.
import type { Damage } from '#src/domain/damage.ts';
import type { StoredEvents } from '#src/domain/monitoring/growth.ts';
import type { EventLog, RecordedEvent } from './event-log.ts';

export type Scanned =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  | { readonly kind: 'damaged'; readonly damage: Damage };

export type Scan = {
  /** In global order. */
  readonly found: readonly Scanned[];
  /** `after` of the next scan; null: this one has reached the end of the log. */
  readonly next: string | null;
  /** Events among them that were stored without a checksum: damage within their texts is not noticed. */
  readonly unchecked: number;
  /** With `index`: events among them that a read of their stream does not find. */
  readonly unindexed: readonly RecordedEvent[];
};

export interface EventScan {
  /** Position of the last stored event, damaged or not; null if there is none. Throws `EventLogUnavailable`. */
  lastPosition(): Promise<string | null>;
  /**
   * Up to `max` events after `after` (exclusive; null: the beginning), as the storage has them, and not as this process
   * keeps them in memory. Damage is listed and does not end the scan. `index`: looks each event up in its stream too.
   * Throws `EventLogUnavailable`.
   */
  scan(options: {
    readonly after: string | null;
    readonly max: number;
    readonly index?: boolean;
  }): Promise<Scan>;
  /**
   * What the storage engine's own check of its files reports, in its words; null: this process cannot run it. May block
   * the thread for as long as the files take to read: for commands only.
   */
  checkFiles(): Promise<readonly string[] | null>;
  /**
   * What is stored, `recentEvents` of it since `sinceMs` (Unix ms); null: no event. Absent: its files are a server's. Throws
   * `EventLogUnavailable`.
   */
  storedEvents?(sinceMs: number): Promise<StoredEvents | null>;
  /** Absent: there is no server. null: it does not state its version. Throws `EventLogUnavailable`. */
  serverVersion?(): Promise<string | null>;
}

export type ScannedLog = EventLog & EventScan;
