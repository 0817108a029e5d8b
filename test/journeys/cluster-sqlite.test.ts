// Three processes of one machine over one embedded log and one PostgreSQL.
import { clusterStory } from '#test/support/process/cluster-story.ts';

clusterStory('sqlite+postgres');
