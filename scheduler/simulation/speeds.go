package simulation

import (
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// speeds is what is known of how fast each machine is with each model: the same for every policy that uses it. It starts with
// the true figures, as after a day, unless the workload says Unknown, and follows what is measured from then on.
type speeds struct {
	w     *world
	by    [][]scheduler.Speed // by machine and model
	rates []float64           // of loads by machine, bytes per second
}

// newer is the weight of a new measurement in a moving average.
const newer = 0.25

func newSpeeds(w *world) *speeds {
	k := &speeds{w: w, by: make([][]scheduler.Speed, len(w.servers)), rates: make([]float64, len(w.servers))}
	for i, s := range w.servers {
		k.by[i] = make([]scheduler.Speed, len(w.fleet.Models))
		if w.Unknown {
			continue
		}
		k.rates[i] = s.LoadRate
		for j := range w.fleet.Models {
			m := &w.fleet.Models[j]
			if r, ok := s.Rates[m.Name]; ok {
				k.by[i][j] = scheduler.Speed{Load: s.loadTime(m), Prompt: r.Prompt, Decode: r.Decode}
			}
		}
	}
	return k
}

// learn takes up a call that ended. Whatever shared the machine with it shows in its rates.
func (k *speeds) learn(c *call, machine int, took time.Duration) {
	alone := k.w.serviceOf(c, machine, c.prompt, c.Output).Seconds()
	r, ok := k.w.fleet.Machines[machine].Rates[c.Model]
	if took <= 0 || !ok {
		return
	}
	share := alone / took.Seconds()
	v := &k.by[machine][c.model]
	if c.prompt > 0 {
		average(&v.Prompt, r.Prompt*share)
	}
	if c.Output > 0 {
		average(&v.Decode, r.Decode*share)
	}
	service := v.Service.Seconds()
	average(&service, took.Seconds())
	v.Service = seconds(service)
}

func (k *speeds) learnLoad(machine, model int, took time.Duration) {
	v := &k.by[machine][model]
	load := v.Load.Seconds()
	average(&load, took.Seconds())
	v.Load = seconds(load)
	average(&k.rates[machine], k.w.fleet.Models[model].File/took.Seconds())
}

func average(old *float64, measured float64) {
	if *old == 0 {
		*old = measured
		return
	}
	*old += newer * (measured - *old)
}

// What the policies assume where nothing was measured.
const (
	unknownService = 10 * time.Second
	unknownLoad    = gb // bytes per second
)

// service is how long a call is expected to run alone on a machine.
func (k *speeds) service(c *call, machine int) time.Duration {
	v := k.by[machine][c.model]
	switch {
	case !k.w.Unknown:
		return k.w.service(c, machine, c.guess())
	case v.Prompt > 0 && (v.Decode > 0 || c.guess() == 0):
		s := float64(c.Prompt) / v.Prompt
		if c.guess() > 0 {
			s += float64(c.guess()) / v.Decode
		}
		return seconds(s)
	default:
		return unknownService
	}
}

// load is how long a load is expected to take.
func (k *speeds) load(machine, model int) time.Duration {
	if v := k.by[machine][model]; v.Load > 0 {
		return v.Load
	}
	rate := k.rates[machine]
	if rate == 0 {
		rate = unknownLoad
	}
	return seconds(k.w.fleet.Models[model].File / rate)
}
