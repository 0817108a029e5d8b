CREATE TABLE "monitoring_hours" (
	"hour" text PRIMARY KEY NOT NULL,
	"succeeded" integer NOT NULL,
	"failed" integer NOT NULL,
	"position" text NOT NULL,
	"durations" integer[]
);
--> statement-breakpoint
ALTER TABLE "monitoring_minutes" ADD COLUMN "durations" integer[];