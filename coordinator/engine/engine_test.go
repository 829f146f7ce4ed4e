package engine

import (
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

const batchScript = `
  const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: input.attempts ?? 3 } });
  output("values", r.values);
  return { total: r.total, failed: r.failures.map((f: any) => f.key) };`

func TestABatchOverTwoNodes(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(2), Options{})
		id := r.submit(p, items(40))
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Succeeded != 40 || v.Coverage != 1 || !v.Simulated || v.Calls != 40 {
			t.Fatalf("%+v", v)
		}
		for _, n := range v.Nodes {
			if n.Items < 10 {
				t.Errorf("%s did %d of 40 items", n.Name, n.Items)
			}
		}
		if got := r.output(id, "result"); got != `{"failed":[],"total":40}` {
			t.Errorf("the result is %s", got)
		}
		r.once(id)
	})
}
