// Three processes over EventStoreDB and PostgreSQL, with no state of their own.
import { clusterStory } from '#test/support/process/cluster-story.ts';

clusterStory('eventstoredb+postgres');
