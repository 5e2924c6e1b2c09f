package main

import "perch/store"

// migrations are all that ever changed the shape of what is kept, the oldest
// first; there are only ever more. Whoever adds one makes a fixture of what it
// leads to: see TestEverySchemaIsRead.
func migrations() []store.Migration { return nil }
