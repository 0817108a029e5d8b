// The measures, in the order in which they run.
import { auditMeasure } from './audit.ts';
import { callsMeasure, eventStoreMeasure, paidMeasure } from './calls.ts';
import { logMeasure } from './event-log.ts';
import { growthMeasure } from './growth.ts';
import { readersMeasure } from './readers.ts';
import { readsMeasure } from './reads.ts';
import { rebuildMeasure } from './rebuild.ts';
import { receiptsMeasure } from './receipts.ts';
import { restMeasure } from './rest.ts';
import type { Measure } from './rounds.ts';
import { schedulesMeasure } from './schedules.ts';
import { startMeasure } from './start.ts';
import { witnessesMeasure } from './witnesses.ts';

export const MEASURES: readonly Measure[] = [
  callsMeasure,
  eventStoreMeasure,
  logMeasure,
  rebuildMeasure,
  readsMeasure,
  receiptsMeasure,
  startMeasure,
  growthMeasure,
  paidMeasure,
  auditMeasure,
  readersMeasure,
  witnessesMeasure,
  schedulesMeasure,
  restMeasure,
];
