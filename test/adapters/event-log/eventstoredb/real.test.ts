// The contract on a real server: EVENTSTORE_URL=esdb://localhost:2113?tls=false.
import process from 'node:process';
import { test } from 'node:test';
import { requirement } from '#test/support/chain/requirements.ts';
import { eventLogContract } from '#test/support/contract/event-log.contract.ts';
import { sharedServerHarness } from '#test/support/log/event-log-eventstoredb.ts';

const url = process.env.EVENTSTORE_URL ?? '';
const needs = requirement('EventStoreDB', url !== '', 'EVENTSTORE_URL names no server');

if (needs.skip) test('eventstoredb: the contract on a real server', needs, () => {});
else eventLogContract('eventstoredb, a real server', sharedServerHarness(url));
