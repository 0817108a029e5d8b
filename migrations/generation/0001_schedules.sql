CREATE TABLE "schedule_runs" (
	"id" text PRIMARY KEY NOT NULL,
	"schedule_id" text NOT NULL,
	"run" integer NOT NULL,
	"job_id" text,
	"due_at" text NOT NULL,
	"state" text NOT NULL,
	"reason" text,
	"started_at" text,
	"late_by_ms" integer,
	"receipt_id" text,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "schedules" (
	"schedule_id" text PRIMARY KEY NOT NULL,
	"status" text NOT NULL,
	"schedule" jsonb NOT NULL,
	"catch_up_seconds" integer NOT NULL,
	"defined_at" text NOT NULL,
	"ends_at" text NOT NULL,
	"next_run" integer,
	"next_due_at" text,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "schedule_runs_of" ON "schedule_runs" USING btree ("schedule_id","run");--> statement-breakpoint
CREATE INDEX "schedule_runs_due" ON "schedule_runs" USING btree ("state","due_at");--> statement-breakpoint
CREATE INDEX "schedules_next" ON "schedules" USING btree ("status","next_due_at");