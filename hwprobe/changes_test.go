package hwprobe

import (
	"reflect"
	"testing"
)

func TestChanges(t *testing.T) {
	with := func(change func(*Report)) Report { r := den(); change(&r); return r }
	state := func(s State) Report { return with(func(r *Report) { r.Devices[0].State = s }) }
	const card = "gpu:0000:0c:00.0"
	for name, c := range map[string]struct {
		from, to Report
		want     []Change
	}{
		"nothing": {den(), den(), nil},
		"numbers that move": {den(), with(func(r *Report) {
			r.Pools[1].FreeBytes, r.Devices[0].Utilisation, r.Warnings[0].Message = Known[uint64](1), Known(99.0), "for 35 s"
		}), nil},
		"asleep":                    {den(), state(StateAsleep), []Change{{Kind: DeviceAsleep, Device: card, From: "ok", To: "asleep"}}},
		"awake":                     {state(StateAsleep), den(), []Change{{Kind: DeviceAwake, Device: card, From: "asleep", To: "ok"}}},
		"lost":                      {den(), state(StateLost), []Change{{Kind: DeviceLost, Device: card, From: "ok", To: "lost"}}},
		"returned":                  {state(StateLost), den(), []Change{{Kind: DeviceReturned, Device: card, From: "lost", To: "ok"}}},
		"returned and asleep":       {state(StateLost), state(StateAsleep), []Change{{Kind: DeviceReturned, Device: card, From: "lost", To: "asleep"}}},
		"degraded":                  {den(), state(StateDegraded), []Change{{Kind: DeviceDegraded, Device: card, From: "ok", To: "degraded"}}},
		"no more to be judged":      {den(), state(StateUnsupported), []Change{{Kind: DeviceUnsupported, Device: card, From: "ok", To: "unsupported"}}},
		"back from being degraded":  {state(StateDegraded), den(), []Change{{Kind: DeviceReturned, Device: card, From: "degraded", To: "ok"}}},
		"a driver was upgraded":     {with(func(r *Report) { r.Devices[0].Driver = "1" }), with(func(r *Report) { r.Devices[0].Driver = "2" }), []Change{{Kind: DriverChanged, Device: card, From: "1", To: "2"}}},
		"a driver that is not told": {with(func(r *Report) { r.Devices[0].Driver = "1" }), den(), nil},
		"a pool grew": {den(), with(func(r *Report) { r.Pools[1].TotalBytes = Known[uint64](24 << 30) }),
			[]Change{{Kind: PoolTotalChanged, Pool: card, From: "17179869184", To: "25769803776"}}},
		"a pool is known now": {den(), with(func(r *Report) { r.Pools[2].TotalBytes = Known[uint64](7) }),
			[]Change{{Kind: PoolTotalChanged, Pool: "gpu:0000:64:00.0", From: "unknown", To: "7"}}},
		"a device more, with a warning": {with(func(r *Report) { r.Devices, r.Warnings = r.Devices[:1], r.Warnings[1:] }), with(func(r *Report) { r.Devices = r.Devices[:2] }), []Change{
			{Kind: DeviceAdded, Device: "gpu:0000:64:00.0", Pool: "gpu:0000:64:00.0", To: "unsupported"},
			{Kind: WarningAppeared, Device: "gpu:0000:64:00.0", Warning: &den().Warnings[0]}}},
		"a device less, and its warning": {with(func(r *Report) { r.Devices = r.Devices[:2] }), with(func(r *Report) { r.Devices, r.Warnings = r.Devices[:1], r.Warnings[1:] }), []Change{
			{Kind: DeviceRemoved, Device: "gpu:0000:64:00.0", Pool: "gpu:0000:64:00.0", From: "unsupported"},
			{Kind: WarningGone, Device: "gpu:0000:64:00.0", Warning: &den().Warnings[0]}}},
	} {
		if got := Changes(c.from, c.to); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	if got := Changes(Report{}, den()); len(got) != 5 {
		t.Errorf("of nothing: %+v, want three devices and two warnings", got)
	}
}
