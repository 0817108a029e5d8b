// The buyer, for commands and the demo: its packages are large, so import this when it is used.

export { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
export { systemClock } from '#src/adapters/runtime/clock.ts';
export type { Fact, PaidExecution, PurchaseEvidence } from '#src/buyer/evidence.ts';
export { openLedger } from '#src/buyer/ledger.ts';
export { limitedSend, present } from '#src/buyer/present.ts';
export { type CallResult, type Order, purchase } from '#src/buyer/purchase.ts';
export {
  buySchedule,
  orderKey,
  readSchedule,
  type ScheduleOrder,
  type ScheduleResult,
} from '#src/buyer/schedule.ts';
export { openScheduleFile } from '#src/buyer/schedule-file.ts';
export { readScheduleBody } from '#src/buyer/schedule-offer.ts';
export { keyPayer, walletAddress } from '#src/buyer/wallet.ts';
