package agent

// change is a set of changes to the memory that is stored in one write. The index has
// them at once and is restored if the write fails. The caller holds Memory.mu.
type change struct {
	index  *index
	now    map[string]*Entry   // by id; nil means removed
	before map[string]*indexed // nil means it did not exist
}

func (m *Memory) newChange() change {
	return change{&m.index, map[string]*Entry{}, map[string]*indexed{}}
}

func (c *change) insert(e Entry) { c.record(e.ID, &e, c.index.insert(e)) }

func (c *change) remove(id string) { c.record(id, nil, c.index.remove(id)) }

func (c *change) record(id string, now *Entry, before *indexed) {
	if _, recorded := c.now[id]; !recorded {
		c.before[id] = before
	}
	c.now[id] = now
}

func (c *change) commit() error {
	put, removed := map[string]Entry{}, []string(nil)
	for id, e := range c.now {
		if e != nil {
			put[id] = *e
		} else {
			removed = append(removed, id)
		}
	}
	if len(c.now) == 0 {
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
