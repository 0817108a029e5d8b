// The buyer, for commands and the demo: its packages are large, so import this when it is used.
export type { Evidence, Execution, Fact } from '#src/adapters/buyer/evidence.ts';
export { openLedger } from '#src/adapters/buyer/ledger.ts';
export { limitedSend, present } from '#src/adapters/buyer/present.ts';
export { type Order, type PurchaseResult, purchase } from '#src/adapters/buyer/purchase.ts';
export {
  buySchedule,
  orderKey,
  readSchedule,
  type ScheduleOrder,
  type ScheduleResult,
} from '#src/adapters/buyer/schedule.ts';
export { openScheduleFile } from '#src/adapters/buyer/schedule-file.ts';
export { readScheduleBody } from '#src/adapters/buyer/schedule-offer.ts';
export { addressOf, keyPayer } from '#src/adapters/buyer/wallet.ts';
export { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';
