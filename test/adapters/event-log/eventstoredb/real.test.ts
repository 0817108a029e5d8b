// The contract on a real server: EVENTSTORE_URL=esdb://localhost:2113?tls=false.
import process from 'node:process';
import { test } from 'node:test';
import { eventLogContract } from '#test/support/event-log.contract.ts';
import { sharedServerHarness } from '#test/support/event-log-eventstoredb.ts';
import { requirement } from '#test/support/requirements.ts';

const url = process.env.EVENTSTORE_URL ?? '';
const needs = requirement('EventStoreDB', url !== '', 'EVENTSTORE_URL names no server');

if (needs.skip) test('eventstoredb: the contract on a real server', needs, () => {});
else eventLogContract('eventstoredb, a real server', sharedServerHarness(url));
