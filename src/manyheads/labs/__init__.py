"""The lab: experiments that test common claims about attention.

An experiment answers one question of the atlas with measurements, a figure, a table and one
sentence that is computed from the numbers, whether it agrees with the textbook or not.
"""
