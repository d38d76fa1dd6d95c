"""Jobs from the request to the stored result: intake, runner, records, housekeeping."""
