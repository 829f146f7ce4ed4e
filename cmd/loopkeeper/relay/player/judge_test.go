package player_test

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay/player"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
)

// The rates of a judge that errs at known rates are found, each within its interval.
func TestAJudgesRatesAreFound(t *testing.T) {
	o := relay.Options{Tasks: 24}
	set, err := relay.Subjects(relay.Reports(o.Tasks, 1), o.Tasks)
	if err != nil {
		t.Fatal(err)
	}
	u := player.Usual
	track, err := relay.Judges(t.Context(), seat(t, player.New(player.Rates{Miss: u.Miss, Alarm: u.Alarm, Abstain: u.Abstain}, nil, set), o), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range track.Judged[0].Rates {
		if m.Type != "" {
			continue
		}
		for name, c := range map[string]struct {
			got  judges.Rate
			want float64
		}{"TPR": {m.Passed, 1 - u.Alarm - u.Abstain}, "TNR": {m.Found, 1 - u.Miss - u.Abstain}, "abstained": {m.Abstained, u.Abstain}} {
			if !near(c.got.Hits, c.got.Of, c.want) {
				t.Errorf("%s: %v is not %.2f", name, c.got, c.want)
			}
		}
		if m.Lines.Hits != m.Lines.Of || m.Failed.Hits != 0 || m.Passed.Of != 24 || m.Found.Of != 24 {
			t.Errorf("%+v", m)
		}
	}
}
