CREATE TABLE "decisions" (
	"decision_id" text PRIMARY KEY NOT NULL,
	"recommendation" text NOT NULL,
	"confidence" text NOT NULL,
	"blocking_issues" jsonb NOT NULL,
	"warnings" jsonb NOT NULL,
	"reasons" jsonb NOT NULL,
	"action_hash" text NOT NULL,
	"policy_hash" text NOT NULL,
	"facts" jsonb NOT NULL,
	"created_at" text NOT NULL,
	"expires_at" text NOT NULL,
	"outcome_status" text NOT NULL,
	"job_id" text,
	"receipt_id" text,
	"receipt_verified" boolean NOT NULL,
	"response_status" integer,
	"error_category" text,
	"attempts" integer NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "decisions_newest" ON "decisions" USING btree ("created_at","decision_id");