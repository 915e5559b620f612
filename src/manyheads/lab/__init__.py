"""The lab: experiments that answer what introductions to attention claim.

An experiment asks one question of the atlas, measures, and answers with a figure, a table and one
sentence that is computed from the numbers, whether it agrees with the textbook or not.
"""
