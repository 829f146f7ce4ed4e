package player_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay/player"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

const model = "player:1b"

// many tasks at once, because what fails is tried again after a pause.
const many = 48

// play runs a benchmark on a player.
func play(t testing.TB, rates player.Rates, o relay.Options) relay.Result {
	t.Helper()
	r, err := relay.Run(t.Context(), seat(t, player.New(rates, relay.Tasks(o), nil), o))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// seat puts a player where a benchmark looks for a model.
func seat(t testing.TB, p *player.Player, o relay.Options) relay.Options {
	stand := ollamatest.New(ollamatest.Config{Slots: many, Memory: 8 << 40, Player: p.Play,
		Models: []ollamatest.Model{{Name: model, Layers: 16, Embedding: 2048, Heads: 16, Context: 32768, Vocab: 4096}}})
	o.Model, o.Ollama, o.Dir, o.Parallel = model, stand.Start(t), t.TempDir(), many
	o.Client = ollamatest.Client(o.Ollama, nil)
	return o
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
