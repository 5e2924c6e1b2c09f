package agent

// change is a set of changes to the memory, stored in one write. The changes are made in
// the index immediately, and undone if the write fails. The caller holds Memory.mu.
type change struct {
	index *index
	after map[string]*Entry // key: entry ID; value: the new entry, or nil if the entry was removed
	// before holds the previous entries, with the same keys as after; a value is nil if
	// there was no such entry.
	before map[string]*indexed
}

func (m *Memory) newChange() change {
	return change{&m.index, map[string]*Entry{}, map[string]*indexed{}}
}

// insert adds an entry, or replaces the entry with the same ID.
func (c *change) insert(e Entry) { c.record(e.ID, &e, c.index.insert(e)) }

func (c *change) remove(id string) { c.record(id, nil, c.index.remove(id)) }

// record records a change that has been made in the index.
func (c *change) record(id string, after *Entry, before *indexed) {
	if _, ok := c.after[id]; !ok {
		c.before[id] = before
	}
	c.after[id] = after
}

// commit stores the changes in the table. If that fails, it undoes them in the index.
func (c *change) commit() error {
	put, removed := map[string]Entry{}, []string(nil)
	for id, e := range c.after {
		if e != nil {
			put[id] = *e
		} else {
			removed = append(removed, id)
		}
	}
	if len(c.after) == 0 {
		return nil
	}
	err := c.index.table.Change(put, removed)
	if err != nil {
		for id, e := range c.before {
			if c.index.remove(id); e != nil {
				c.index.insert(e.Entry)
			}
		}
	}
	return err
}
