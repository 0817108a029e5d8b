// Buy runs of a schedule with an x402 client
// Three hourly runs, each with a payment of its own that is settled when the run is due, or never. A second run of this code buys another schedule. These payments are valid at once: relay pay --schedule signs payments that no one can charge before their runs.
// Run: npm install @x402/fetch @x402/evm viem && node javascript-schedule.mjs
import { wrapFetchWithPayment } from '@x402/fetch';
import { buyerClient } from './buyer-client.mjs';

const hour = 3600; // seconds
const catchUpSeconds = 300;
const startMs = Date.now() + hour * 1000;
const order = {
  webhook: { url: 'https://example.com/hook', method: 'POST', body: { event: 'report.due' } },
  schedule: { type: 'interval', everyMinutes: 60, startAt: new Date(startMs).toISOString() },
  catchUpSeconds,
};

// `token`: of a run after the first, which its payer buys, or who has the schedule's token.
async function buyRun(n, url, body, token) {
  // Until the run is due, as late as it may start, and 120 s for its settlement; the clocks may differ by a minute.
  const longest = n * hour + catchUpSeconds + 120 + 60;
  const paid = wrapFetchWithPayment(fetch, buyerClient(url, longest));
  const headers = { 'content-type': 'application/json', ...(token && { authorization: 'Bearer ' + token }) };
  const answer = await paid(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (answer.status !== 201) throw new Error(answer.status + ' ' + (await answer.text()));
  const bought = await answer.json();
  const { n: number, dueAt } = bought.run;
  if (number !== n || Date.parse(dueAt) !== startMs + (n - 1) * hour * 1000)
    throw new Error('paid for another run than was ordered: ' + number + ', due ' + dueAt);
  console.log('run', n, 'due', dueAt);
  return bought;
}

const { scheduleId, cancelToken } = await buyRun(1, 'https://relay.example/api/schedules/webhook', order);
const schedule = 'https://relay.example/api/schedules/' + scheduleId;
// Keep both: GET shows the runs, DELETE with the token in `authorization: Bearer` cancels those to come.
console.log(schedule, cancelToken);
for (const n of [2, 3]) await buyRun(n, schedule + '/runs', {}, cancelToken);
