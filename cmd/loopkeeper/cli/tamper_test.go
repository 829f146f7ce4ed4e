package cli_test

import (
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"
)

// tamper is `tamper FILE RUN OLD NEW`: it changes what a run of a ledger asked for, as nobody may.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'event'")
	ts.Check(err)
	var triggers []string
	for rows.Next() {
		var name string
		ts.Check(rows.Scan(&name))
		triggers = append(triggers, name)
	}
	ts.Check(rows.Err())
	ts.Check(rows.Close())
	for _, name := range triggers {
		_, err = db.Exec("DROP TRIGGER " + name)
		ts.Check(err)
	}
	done, err := db.Exec("UPDATE event SET payload = replace(payload, ?, ?) WHERE run_id = ? AND kind = 'step.requested'", args[2], args[3], args[1])
	ts.Check(err)
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		ts.Fatalf("%d events were changed, %v", n, err)
	}
}
