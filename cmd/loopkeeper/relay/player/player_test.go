package player_test

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay/player"
)

// A player without faults does every task in every arm, so that what goes wrong with faults is theirs.
func TestWithoutFaultsEverythingSucceeds(t *testing.T) {
	o := relay.Options{Sizes: []int{3, 5}, Tasks: 2, Arms: []relay.Arm{relay.InModel, relay.InModelGold, relay.InCodeGold}}
	for _, r := range play(t, player.Rates{}, o) {
		if !r.Success || r.Error != "" || r.Cost.Calls == 0 {
			t.Errorf("%+v", r)
		}
	}
}
