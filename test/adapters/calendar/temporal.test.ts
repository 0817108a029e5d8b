import { temporalCalendar } from '#src/adapters/calendar/temporal.ts';
import { calendarContract } from '#test/support/calendar.contract.ts';

calendarContract('by Temporal', temporalCalendar());
