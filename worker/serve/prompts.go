package serve

import (
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
)

// prompts are the texts that a run pins where they are not the worker's own. They come by hash like any text.
func (s *Server) prompts(c *workerv1.Call) (prompts.Set, error) {
	if len(c.GetPrompts()) == 0 {
		return nil, nil
	}
	texts, err := s.bodies.texts(c.GetPrompts()...)
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for i, b := range c.GetPrompts() {
		named[b.GetName()] = texts[i]
	}
	set, err := prompts.Set(nil).With(named)
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%v", err)
	}
	return set, nil
}
