# Preview a schedule
# The next runs, across daylight saving. Nothing is scheduled.
# Run: sh curl-schedule-preview.sh
curl -sS --fail-with-body https://relay.example/api/schedules/preview \
  -H 'content-type: application/json' \
  -d '{
  "webhook": {
    "url": "https://example.com/hook",
    "method": "POST",
    "body": {"event": "order.paid", "order": 17}
  },
  "schedule": {
    "type": "daily",
    "timeOfDay": "09:00",
    "timezone": "Europe/Berlin"
  }
}'
