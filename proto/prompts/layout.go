package prompts

// Layout names how a worker puts texts, context and item together into what a model is asked. It is raised when that, or one of the
// texts, changes so much that results of before are no results of the same request: then none of them is taken over.
const Layout = "1"
