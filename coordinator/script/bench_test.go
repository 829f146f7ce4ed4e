package script

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

const loop = `import { generate } from "loopkeeper";
export default async () => { for (;;) await generate({ model: "m", prompt: "p" }) }`

// A child's start and one message to it and back, against the same in this process.
func BenchmarkStart(b *testing.B) {
	program, err := BundleText("flow.ts", loop)
	if err != nil {
		b.Fatal(err)
	}
	for name, host := range hosts(Limits{}) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, _, err := host.Start(context.Background(), Start{Program: program})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

func BenchmarkDeliver(b *testing.B) {
	program, err := BundleText("flow.ts", loop)
	if err != nil {
		b.Fatal(err)
	}
	for name, host := range hosts(Limits{}) {
		b.Run(name, func(b *testing.B) {
			s, _, err := host.Start(context.Background(), Start{Program: program})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for pos := 0; b.Loop(); pos++ {
				if _, err := s.Deliver(context.Background(), Delivery{Pos: pos, Value: json.RawMessage(`{"ref":"r","name":"n","bytes":1}`)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A batch of many references in and out of the script.
func BenchmarkLargeBatch(b *testing.B) {
	items := `{"bytes":12345,"name":"docs/a-file.md","ref":"0123456789012345678901234567890123456789012345678901234567890123"}`
	input := "[" + strings.Repeat(items+",", 9999) + items + "]"
	program, err := BundleText("flow.ts", `import { batch } from "loopkeeper"; export default (items: any) => batch({ model: "m", prompt: "{{item}}", items })`)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		s, _, err := NewHost(Limits{}).Start(context.Background(), Start{Program: program, Input: json.RawMessage(input)})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
